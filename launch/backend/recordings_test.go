package backend

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/flagos-ai/zlexec/sample"
)

var updateRecordings = flag.Bool("update", false, "write what the recordings under testdata are read as")

func backendNames(t *testing.T) (names []string) {
	t.Helper()
	files, err := filepath.Glob("*.toml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no backend files: %v", err)
	}
	for _, f := range files {
		names = append(names, strings.TrimSuffix(f, ".toml"))
	}
	return names
}

func recordings(t *testing.T, backend string) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	files, _ := filepath.Glob(filepath.Join("testdata", backend, "*.txt"))
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		all[f] = data
	}
	return all
}

// TestRecordings reads every recording as --sample --from does and compares with
// the JSON beside it, which -update writes.
func TestRecordings(t *testing.T) {
	synthetic, total := 0, 0
	for _, name := range backendNames(t) {
		all := readTools(t, name)
		for file, data := range recordings(t, name) {
			total++
			if strings.Contains(string(data), "\n## synthetic") {
				synthetic++
			}
			s := sample.Parse(append(all.Telemetry, all.List...), data, time.Time{})
			base := filepath.Base(file) // a numbering alone is no listing
			if nothing := strings.HasPrefix(base, "err_") || strings.HasSuffix(base, "-numbering.txt"); nothing != (len(s.Devices) == 0) {
				t.Errorf("%s: %d devices", file, len(s.Devices))
			}
			got, err := json.MarshalIndent(map[string]any{"state": s.State, "detail": s.Detail, "devices": s.Devices}, "", " ")
			if err != nil {
				t.Fatal(err)
			}
			golden := strings.TrimSuffix(file, ".txt") + ".json"
			if *updateRecordings {
				if err := os.WriteFile(golden, append(got, '\n'), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil || strings.TrimSpace(string(want)) != string(got) {
				t.Errorf("%s is read as\n%s\nwhich %s does not say (%v)", file, got, golden, err)
			}
		}
	}
	t.Logf("%d recordings, %d of them synthetic", total, synthetic)
}

// TestEveryParserHasARecording: a format that a backend file names and no recording
// has would be a guess.
func TestEveryParserHasARecording(t *testing.T) {
	for _, name := range backendNames(t) {
		all := readTools(t, name)
		files := recordings(t, name)
		for i, tool := range append(all.List, all.Telemetry...) {
			if err := tool.Check(); err != nil {
				t.Errorf("%s: tool %d: %v", name, i, err)
				continue
			}
			for _, tool := range append([]sample.Tool{tool}, tool.Extra...) {
				for _, format := range tool.Formats {
					if format == "host" || format == "sysfs" {
						continue
					}
					if !anyIsRead(tool, format, files) {
						t.Errorf("%s: no recording of %v as %s", name, tool.Argv, format)
					}
				}
			}
		}
	}
}

func anyIsRead(tool sample.Tool, format string, files map[string][]byte) bool {
	tool.Formats = []string{format}
	for _, data := range files {
		s := sample.Parse([]sample.Tool{tool}, data, time.Time{})
		if len(s.Devices) > 0 && strings.HasPrefix(string(data), "# $ "+tool.Argv[0]) {
			return true
		}
	}
	return false
}

// TestForeignOutput: what the tool of another vendor prints is not read, though many
// have copied a layout or a name.
func TestForeignOutput(t *testing.T) {
	for _, name := range backendNames(t) {
		all := readTools(t, name)
		for _, other := range backendNames(t) {
			for file, data := range recordings(t, other) {
				if other == name || strings.Contains(filepath.Base(file), "err_") {
					continue // such a recording of a clash is of the other vendor's tool
				}
				_, output, _ := strings.Cut(string(data), "\n")
				for strings.HasPrefix(output, "##") {
					_, output, _ = strings.Cut(output, "\n")
				}
				s := sample.Parse(append(all.Telemetry, all.List...), []byte(output), time.Time{})
				if len(s.Devices) > 0 && !(name == "cuda" && strings.HasSuffix(file, "4.2-csv.txt")) { // numbers alone
					t.Errorf("%s reads %d devices in %s", name, len(s.Devices), file)
				}
			}
		}
	}
}

// fakeTools puts links to fakesmi on PATH, one for each tool that has a recording.
func fakeTools(t *testing.T, backend string) {
	t.Helper()
	fake, err := filepath.Abs(filepath.Join("..", "..", "scripts", "fakesmi", "fakesmi"))
	if err != nil {
		t.Fatal(err)
	}
	saved, err := filepath.Abs(filepath.Join("testdata", backend))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, data := range recordings(t, backend) {
		command, _, _ := strings.Cut(strings.TrimPrefix(string(data), "# $ "), "\n")
		link := filepath.Join(dir, strings.Fields(command)[0])
		if err := os.Symlink(fake, link); err != nil && !os.IsExist(err) {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir+":/usr/bin:/bin")
	t.Setenv("FAKESMI", saved)
}

// TestFakeTools takes snapshots and listings of every backend from its recordings.
func TestFakeTools(t *testing.T) {
	for _, name := range backendNames(t) {
		t.Run(name, func(t *testing.T) {
			all := readTools(t, name)
			fakeTools(t, name)
			if len(all.Telemetry) > 0 {
				s := sample.Take(sample.Request{Tools: all.Telemetry, Timeout: time.Minute})
				if s.State != sample.OK || len(s.Devices) == 0 || s.Detail != nil {
					t.Errorf("snapshot: state %s, %d devices, %s", s.State, len(s.Devices), word(s.Detail))
				}
			}
			if len(all.List) > 0 {
				if devices, why := Enumerate(all.List, nil, time.Minute); len(devices) == 0 {
					t.Errorf("listing: %s", why)
				}
			}
		})
	}
}

// TestPinned: the readings of a pinned device are that device's, in the mask's
// numbering.
func TestPinned(t *testing.T) {
	for _, c := range []struct {
		backend string
		mask    []string
		want    string // index sm mem temp power util
	}{
		{"cuda", []string{"1"}, "1 345 1593 31 46.9 2"},
		{"cuda", []string{"MIG-0f0f0f0f-0000-4000-8000-000000000101"}, "1 345 1593 31 46.9 2"},
		{"ascend", []string{"3"}, "3 805 1599 40 unknown 2"},
		{"ascend", []string{"0", "2"}, "0 1654 1600 41 171.3 55; 2 1655 1600 39 168 1"},
		{"gaudi", []string{"2"}, "2 unknown unknown 29 91 unknown"},
		{"rocm", []string{"GPU-0f0f0f0f00000002"}, "1 57 unknown 38 unknown 0"},
		{"xpu", []string{"0"}, "0 1550 unknown 53 202 61"},
	} {
		t.Run(c.backend, func(t *testing.T) {
			fakeTools(t, c.backend)
			s := sample.Take(sample.Request{Tools: readTools(t, c.backend).Telemetry, Devices: c.mask, Timeout: time.Minute})
			var got []string
			for _, d := range s.Devices {
				got = append(got, fmt.Sprintf("%s %s %s %s %s %s", word(d.Index), show(d.SMClockMHz), show(d.MemClockMHz), show(d.TempC), show(d.PowerW), show(d.UtilPct)))
			}
			if strings.Join(got, "; ") != c.want {
				t.Errorf("%v: %q, want %q (%s %s)", c.mask, strings.Join(got, "; "), c.want, s.State, word(s.Detail))
			}
		})
	}
}

// TestLostDevice: what a tool says of a lost device is a state of its own.
func TestLostDevice(t *testing.T) {
	fakeTools(t, "cuda")
	all := readTools(t, "cuda").Telemetry
	for _, c := range []struct {
		device  []string
		state   string
		devices int
	}{{[]string{"8"}, sample.Lost, 0}, {[]string{"5"}, sample.Failed, 0}, {[]string{"6"}, sample.Failed, 0}, {[]string{"0", "1"}, sample.Lost, 2}} {
		s := sample.Take(sample.Request{Tools: all, Devices: c.device, Timeout: time.Minute})
		if s.State != c.state || len(s.Devices) != c.devices {
			t.Errorf("device %v: state %s, %d devices (%s)", c.device, s.State, len(s.Devices), word(s.Detail))
		}
	}
}

func TestListings(t *testing.T) {
	for backend, want := range map[string]string{
		"cuda":   "[{0 GPU-0f0f0f0f-0000-4000-8000-000000000001 NVIDIA H100 PCIe 9.0} {1 GPU-0f0f0f0f-0000-4000-8000-000000000002 NVIDIA H100 PCIe 9.0}]",
		"ascend": "[{0  Ascend910 } {1  Ascend910 } {2  Ascend910 } {3  Ascend910 }]",
		"musa":   "[{0 0f0f0f0f-0000-4000-8000-000000000001 MTT S4000 } {3 0f0f0f0f-0000-4000-8000-000000000002 MTT S4000 }]",
		"rocm":   "[{0 0x0f0f0f0f00000001 AMD Instinct MI210 gfx90a} {1 0x0f0f0f0f00000002 AMD Instinct MI210 gfx90a}]",
		"gaudi":  "[{5 0f0f-0-1 HL-225 } {2 0f0f-0-2 HL-225 }]",
	} {
		fakeTools(t, backend)
		devices, why := Enumerate(readTools(t, backend).List, nil, time.Minute)
		if got := fmt.Sprint(devices); got != want {
			t.Errorf("%s: %s (%s)\nwant %s", backend, got, why, want)
		}
	}
}
