package sample

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// tool writes a shell script of that name into a directory that is put first on
// PATH, and returns the directory.
func tool(t *testing.T, name, script string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	return dir
}

// csvTool is a tool that asks for three columns.
func csvTool(argv ...string) Tool {
	return Tool{Argv: append([]string{"x-smi"}, argv...), Formats: []string{"csv"},
		Fields: map[string][]string{"temp_c": {"temperature"}, "util_pct": {"use"}}}
}

const plenty = 30 * time.Second // a deadline that no test is to reach

func take(t *testing.T, r Request) (s Snapshot, detail string) {
	t.Helper()
	r.NoHost = true
	s = Take(r)
	if s.Devices == nil {
		t.Error("devices is null, not an empty list")
	}
	if s.Detail != nil {
		detail = *s.Detail
	}
	if s.State != OK && detail == "" {
		t.Errorf("state %s has no reason", s.State)
	}
	return s, detail
}

func TestTakeStates(t *testing.T) {
	lost := csvTool()
	lost.Lost, lost.LostExit = `GPU is lost`, []int{15}
	for _, c := range []struct {
		name, script string
		tool         Tool
		state        string
		detail       string // a part of it
		devices      int
	}{
		{"good", `printf 'index, temperature, use [%%]\n0, 41, 3 %%\n1, [N/A], 0 %%\n'`, csvTool(), OK, "", 2},
		{"error on stdout", `echo "could not talk to the driver"; exit 9`, csvTool(), Failed, "x-smi exited 9: could not talk", 0},
		{"error on stderr, exit 0", `echo "no such device card7" >&2`, csvTool(), Failed, "no such device card7", 0},
		{"silence", `exit 0`, csvTool(), Failed, "printed nothing", 0},
		{"garbage", `printf '\000\377\033[31m{[,,"\n'; head -c 4000 /dev/urandom`, csvTool(), Malformed, "", 0},
		{"prose", `echo "Usage: x-smi [options]"`, csvTool(), Malformed, "no device in the output: Usage: x-smi", 0},
		{"lost by exit code", `echo "Reboot the system"; exit 15`, lost, Lost, "Reboot", 0},
		{"lost by text", `echo "GPU is lost. Reboot"; exit 2`, lost, Lost, "GPU is lost", 0},
		{"lost cell", `printf 'index, temperature, use\n0, [GPU is lost], [GPU is lost]\n1, 40, 1\n'`, lost, Lost, "device 0", 2},
		{"killed", `kill -9 $$`, csvTool(), Failed, "", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			tool(t, "x-smi", c.script)
			s, detail := take(t, Request{Tools: []Tool{c.tool}, Timeout: plenty})
			if s.State != c.state || len(s.Devices) != c.devices || !strings.Contains(detail, c.detail) {
				t.Errorf("state %s, %d devices, detail %q; want %s, %d, %q", s.State, len(s.Devices), detail, c.state, c.devices, c.detail)
			}
		})
	}
}

func TestTakeWithoutTool(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	a, b := csvTool(), csvTool()
	b.Argv = []string{"y-smi"}
	s, detail := take(t, Request{Tools: []Tool{a, b}, Timeout: plenty})
	if s.State != None || detail != "x-smi is not on PATH; y-smi is not on PATH" {
		t.Errorf("state %s, detail %q", s.State, detail)
	}
	if s, detail := take(t, Request{Timeout: plenty}); s.State != None || !strings.Contains(detail, "no vendor tool") {
		t.Errorf("no tools: state %s, detail %q", s.State, detail)
	}
	if s, _ := take(t, Request{Tools: []Tool{a}, Devices: []string{}, Timeout: plenty}); s.State != None {
		t.Errorf("a mask that hides all: state %s", s.State)
	}
}

func TestTakeWellKnownPlace(t *testing.T) {
	dir := tool(t, "x-smi", `printf 'index, use\n0, 5\n'`)
	t.Setenv("PATH", "/nonexistent")
	x := csvTool()
	x.Paths = []string{"/nonexistent", dir}
	x.Argv = []string{"x-smi"}
	if s, detail := take(t, Request{Tools: []Tool{x}, Env: []string{"PATH=/usr/bin:/bin"}, Timeout: plenty}); s.State != OK {
		t.Errorf("state %s: %s", s.State, detail)
	}
}

// gone waits for the end of a process that was killed; the deadline is the test's.
func gone(t *testing.T, file string) {
	t.Helper()
	data, err := os.ReadFile(file)
	pid, numErr := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil || numErr != nil {
		t.Fatalf("the tool left no process id: %v %v", err, numErr)
	}
	for range 1000 {
		if syscall.Kill(pid, 0) == syscall.ESRCH || zombie(pid) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("process %d is still there", pid)
}

// zombie reports whether a process is dead and only waits for its parent.
func zombie(pid int) bool {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err == nil && strings.Contains(string(data), ") Z ")
}

func TestHangingToolIsKilledWithItsChildren(t *testing.T) {
	dir := t.TempDir()
	tool(t, "x-smi", `trap '' TERM INT HUP; sleep 1000 & echo $! >`+dir+`/child; echo $$ >`+dir+`/leader; while :; do sleep 1000; done`)
	s, detail := take(t, Request{Tools: []Tool{csvTool()}, Timeout: 500 * time.Millisecond})
	if s.State != TimedOut || !strings.Contains(detail, "x-smi") {
		t.Errorf("state %s, detail %q", s.State, detail)
	}
	gone(t, dir+"/leader")
	gone(t, dir+"/child")
}

func TestBackgroundChildThatKeepsThePipe(t *testing.T) {
	dir := t.TempDir()
	tool(t, "x-smi", `sleep 1000 & echo $! >`+dir+`/child; printf 'index, temperature\n0, 44\n'`)
	s, detail := take(t, Request{Tools: []Tool{csvTool()}, Timeout: plenty})
	if s.State != OK || len(s.Devices) != 1 || *s.Devices[0].TempC != 44 {
		t.Errorf("state %s, detail %q, devices %v", s.State, detail, s.Devices)
	}
	gone(t, dir+"/child")
}

func TestFloodIsCut(t *testing.T) {
	dir := t.TempDir()
	for _, to := range []string{"", " >&2"} {
		tool(t, "x-smi", `echo $$ >`+dir+`/leader; exec head -c 100000000 /dev/zero`+to)
		s, detail := take(t, Request{Tools: []Tool{csvTool()}, Timeout: plenty})
		if s.State != Failed || !strings.Contains(detail, "more than 4 MiB") {
			t.Errorf("state %s, detail %q", s.State, detail)
		}
		gone(t, dir+"/leader")
	}
}

func TestToolSurroundings(t *testing.T) {
	tool(t, "x-smi", `printf 'index, name\n0, %s/%s/%s\n' "$LC_ALL" "$OTHER" "$(cat | wc -c)"; test $(ps -o pgid= -p $$) = $$ || exit 3`)
	s, detail := take(t, Request{Tools: []Tool{csvTool()}, Timeout: plenty,
		Env: []string{"LC_ALL=de_DE.UTF-8", "OTHER=kept", "PATH=" + os.Getenv("PATH")}})
	if s.State != OK || *s.Devices[0].Name != "C/kept/0" {
		t.Errorf("state %s, detail %q, devices %v", s.State, detail, s.Devices)
	}
}

func TestFallback(t *testing.T) {
	dir := tool(t, "y-smi", `printf 'index, temperature\n0, 31\n'`)
	if err := os.WriteFile(filepath.Join(dir, "x-smi"), []byte("#!/bin/sh\necho broken; exit 1\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	y := csvTool()
	y.Argv = []string{"y-smi"}
	s, detail := take(t, Request{Tools: []Tool{csvTool(), y}, Timeout: plenty})
	if s.State != OK || detail != "" || len(s.Devices) != 1 {
		t.Errorf("state %s, detail %q", s.State, detail)
	}
	y.Argv = []string{"z-smi"}
	if s, detail := take(t, Request{Tools: []Tool{csvTool(), y}, Timeout: plenty}); s.State != Failed || !strings.Contains(detail, "broken") {
		t.Errorf("a failing tool, then a missing one: state %s, detail %q", s.State, detail)
	}
}

func TestArguments(t *testing.T) {
	base := []string{"x", "-i", "{dev}", "--all"}
	for _, c := range []struct {
		tool    Tool
		devices []string
		want    string
	}{
		{Tool{Argv: base}, nil, "x --all"},
		{Tool{Argv: base}, []string{"3"}, "x -i 3 --all"},
		{Tool{Argv: base}, []string{"3", "4"}, "x --all"},
		{Tool{Argv: base, Join: ","}, []string{"3", "4"}, "x -i 3,4 --all"},
		{Tool{Argv: base, Join: " "}, []string{"3", "4"}, "x -i 3 4 --all"},
		{Tool{Argv: base}, []string{"GPU-12"}, "x --all"},
		{Tool{Argv: base, Pin: `\d+|GPU-.*`}, []string{"GPU-12"}, "x -i GPU-12 --all"},
		{Tool{Argv: []string{"x", "{dev}"}}, nil, "x"},
		{Tool{Argv: base, Pinned: true}, nil, ""},
		{Tool{Argv: base, Pinned: true}, []string{"1"}, "x -i 1 --all"},
	} {
		if got := strings.Join(c.tool.arguments(c.devices), " "); got != c.want {
			t.Errorf("%v for %v: %q, want %q", c.tool.Argv, c.devices, got, c.want)
		}
	}
}

func TestFilter(t *testing.T) {
	tool(t, "x-smi", `printf 'index, uuid, temperature\n0, GPU-aa11, 30\n1, GPU-bb22, 31\n7, 0xcc33, 32\n'`)
	for _, c := range []struct {
		devices []string
		want    string
	}{
		{nil, "0,1,7"}, {[]string{"7"}, "7"}, {[]string{"7", "0"}, "0,7"}, {[]string{"7", "5"}, "7"}, {[]string{"GPU-bb"}, "1"}, {[]string{"GPU-cc33"}, "7"},
		{[]string{"2"}, ""}, {[]string{"GPU-"}, ""},
	} {
		s, detail := take(t, Request{Tools: []Tool{csvTool()}, Devices: c.devices, Timeout: plenty})
		if missing := len(c.devices) > 1 && c.devices[1] == "5"; missing != (s.State == OK && strings.Contains(detail, "not of 5")) {
			t.Errorf("%v: detail %q", c.devices, detail)
		}
		if got := indices(s.Devices); len(s.Devices) > 0 && got != c.want || c.want == "" && s.State != Failed {
			t.Errorf("%v: %s %q, want %q (%s)", c.devices, s.State, got, c.want, detail)
		}
	}
}

func TestMap(t *testing.T) {
	// Two cards of two chips; the mask counts 0-3, the tool cards 4 and 5.
	tool(t, "x-smi", `case "$*" in
map) printf 'card chip logic\n4 0 0\n4 1 1\n4 2 -\n5 0 2\n5 1 3\n';;
"clock 5") echo "card,chip,clock"; echo "5,0,900"; echo "5,1,910";;
*) printf 'card,chip,temperature\n4,0,40\n4,1,41\n5,0,50\n5,1,51\n';;
esac`)
	x := Tool{Argv: []string{"x-smi", "all"}, Formats: []string{"csv"}, Fields: map[string][]string{"temp_c": {"temperature"}},
		Map: &Map{Argv: []string{"x-smi", "map"}, Line: []string{`^(?P<card>\d+) (?P<chip>\d+) (?P<index>\d+)`}},
		Extra: []Tool{{Argv: []string{"x-smi", "clock", "{card}"}, Formats: []string{"csv"},
			Fields: map[string][]string{"sm_clock_mhz": {"clock"}}}}}
	s, detail := take(t, Request{Tools: []Tool{x}, Devices: []string{"3"}, Timeout: plenty})
	if s.State != OK || len(s.Devices) != 1 || *s.Devices[0].Index != "3" || *s.Devices[0].TempC != 51 || s.Devices[0].SMClockMHz == nil || *s.Devices[0].SMClockMHz != 910 {
		t.Errorf("pinned: state %s, detail %q, devices %+v", s.State, detail, s.Devices)
	}
	s, _ = take(t, Request{Tools: []Tool{x}, Timeout: plenty})
	if indices(s.Devices) != "0,1,2,3" {
		t.Errorf("all: %s", indices(s.Devices))
	}
	x.Map.Argv = []string{"nothing-here"}
	if s, _ := take(t, Request{Tools: []Tool{x}, Devices: []string{"3"}, Timeout: plenty}); s.State == OK {
		t.Error("a pinned device was read without the map that tells which one it is")
	}
	if s, detail := take(t, Request{Tools: []Tool{x}, Timeout: plenty}); s.State != OK || !strings.Contains(detail, "the tool's own") {
		t.Errorf("all without the map: state %s, detail %q", s.State, detail)
	}
}

func TestMapInstances(t *testing.T) {
	tool(t, "x-smi", `case "$*" in
-L) printf 'GPU 0: A (UUID: GPU-00)\nGPU 1: B (UUID: GPU-11)\n  MIG 1g Device 0: (UUID: MIG-5)\n  MIG 1g Device 1: (UUID: MIG-6)\n';;
*"-i 1"*) printf 'index, temperature\n1, 61\n';;
*) exit 2;;
esac`)
	x := csvTool("-i", "{dev}")
	x.Map = &Map{Argv: []string{"x-smi", "-L"}, When: `MIG-.+`, Line: []string{`^GPU (?P<card>\d+): `, `^\s+MIG .*\(UUID: (?P<uuid>MIG-[^)]+)\)`}}
	s, detail := take(t, Request{Tools: []Tool{x}, Devices: []string{"MIG-6"}, Timeout: plenty})
	if s.State != OK || len(s.Devices) != 1 || *s.Devices[0].Index != "1" || *s.Devices[0].TempC != 61 {
		t.Errorf("state %s, detail %q, devices %+v", s.State, detail, s.Devices)
	}
}
