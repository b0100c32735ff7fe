package launch_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// The tests of this package run the real binary in front of real commands, and
// compare with the bare command where that makes sense. The test binary itself
// serves as a command, when this variable names one of children.
const childVariable = "ZLEXEC_TEST_CHILD"

var children = map[string]func(args []string){
	"argv":     func(args []string) { fmt.Printf("%q", args) },
	"files":    childFiles,
	"flood":    childFlood,
	"recorder": childRecorder,
	"terminal": childTerminal,
}

func TestMain(m *testing.M) {
	if child := children[os.Getenv(childVariable)]; child != nil {
		child(os.Args[1:])
		os.Exit(0)
	}
	defaultSignals()
	code := m.Run()
	if binaryDir != "" {
		_ = os.RemoveAll(binaryDir)
	}
	os.Exit(code)
}

// defaultSignals starts the tests anew with no signal ignored, if one is: under
// nohup, or in a background job of a plain shell, commands could not die of it.
func defaultSignals() {
	const mark = "TEST_SIGNALS_ARE_DEFAULT"
	if _, done := os.LookupEnv(mark); !done && (signal.Ignored(unix.SIGHUP) || signal.Ignored(unix.SIGINT)) {
		if env, err := exec.LookPath("env"); err == nil {
			_ = syscall.Exec(env, append([]string{"env", "--default-signal", os.Args[0]}, os.Args[1:]...), append(os.Environ(), mark+"=1"))
		}
	}
}

var binaryDir string // removed at the end

// built returns the path of the binary, made by scripts/build once.
var built = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "zlexec-test")
	if err != nil {
		return "", err
	}
	binaryDir = dir
	file := filepath.Join(dir, "zlexec")
	if out, err := exec.Command("../scripts/build", file).CombinedOutput(); err != nil {
		return "", fmt.Errorf("scripts/build: %w\n%s", err, out)
	}
	return file, nil
})

// prefix returns the words in front of a command; nil is the bare command.
func prefix(t *testing.T, flags ...string) []string {
	t.Helper()
	file, err := built()
	if err != nil {
		t.Fatal(err)
	}
	return append(append([]string{file, "-q", "--telemetry", "off", "--backend", "cuda"}, flags...), "--")
}

// command prepares prefix and words in a session of its own.
func command(pre []string, words ...string) *exec.Cmd {
	all := append(slices.Clone(pre), words...)
	c := exec.Command(all[0], all[1:]...)
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	c.Env = os.Environ()
	return c
}

// self is a command that is one of children.
func self(pre []string, child string, args ...string) *exec.Cmd {
	c := command(pre, append([]string{os.Args[0]}, args...)...)
	c.Env = append(c.Env, childVariable+"="+child)
	return c
}

// result is what a caller sees of a command.
type result struct {
	stdout, stderr string
	status         string // "exit 3" or "signal 15"
}

func finish(t *testing.T, c *exec.Cmd) result {
	t.Helper()
	var out, errs bytes.Buffer
	if c.Stdout == nil {
		c.Stdout = &out
	}
	if c.Stderr == nil {
		c.Stderr = &errs
	}
	if err := c.Run(); err != nil && c.ProcessState == nil {
		t.Fatalf("%q: %v", c.Args, err)
	}
	return result{out.String(), errs.String(), status(c)}
}

func status(c *exec.Cmd) string {
	ws := c.ProcessState.Sys().(syscall.WaitStatus)
	if ws.Signaled() {
		return "signal " + strconv.Itoa(int(ws.Signal()))
	}
	return "exit " + strconv.Itoa(ws.ExitStatus())
}

// same runs a command bare and under each way of zlexec, and wants no difference.
func same(t *testing.T, make func(pre []string) *exec.Cmd) {
	t.Helper()
	bare := finish(t, make(nil))
	for name, pre := range map[string][]string{"default": prefix(t), "both": prefix(t, "--scan", "both"), "exec": prefix(t, "--exec")} {
		if got := finish(t, make(pre)); got != bare {
			t.Errorf("%s: got %+v\nbare %+v", name, got, bare)
		}
	}
}

// eventually polls a condition; the machine may stand still, so the polls are
// counted and not the time.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for range 3000 {
		if ok() {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatalf("never came: %s", what)
}

func read(file string) string {
	data, _ := os.ReadFile(file)
	return string(data)
}

// state returns the letter of a process's state, "" when it is gone.
func state(pid int) string {
	_, rest, _ := strings.Cut(read(fmt.Sprintf("/proc/%d/stat", pid)), ") ")
	if rest == "" || rest[0] == 'Z' {
		return ""
	}
	return rest[:1]
}

// below returns the children of a process by their names.
func below(pid int) map[string]int {
	found := map[string]int{}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, s := range stats {
		data := read(s)
		head, rest, ok := strings.Cut(data, ") ")
		f := strings.Fields(rest)
		if !ok || len(f) < 2 || f[1] != strconv.Itoa(pid) {
			continue
		}
		id, name, _ := strings.Cut(head, " (")
		if n, err := strconv.Atoi(id); err == nil {
			found[name] = n
		}
	}
	return found
}

func childFiles([]string) {
	entries, _ := os.ReadDir("/proc/self/fd")
	for _, e := range entries {
		// What Go's runtime opened for itself is close-on-exec, what was inherited is not.
		n, _ := strconv.Atoi(e.Name())
		if flags, err := unix.FcntlInt(uintptr(n), unix.F_GETFD, 0); err == nil && flags&unix.FD_CLOEXEC == 0 {
			fmt.Print(e.Name(), " ")
		}
	}
}

// childFlood writes args[1] MiB in odd portions to descriptor args[0].
func childFlood(args []string) {
	fd, _ := strconv.Atoi(args[0])
	mib, _ := strconv.Atoi(args[1])
	block := bytes.Repeat([]byte(args[2]), (1<<20)/len(args[2]))
	for range mib {
		for b := block; len(b) > 0; {
			n, err := unix.Write(fd, b[:min(len(b), 10007)])
			if err != nil {
				os.Exit(9)
			}
			b = b[n:]
		}
	}
}

// childRecorder notes its pid and every signal it gets in the file args[0], a
// line each, until it is killed or stdin ends.
func childRecorder(args []string) {
	log, err := os.OpenFile(args[0], os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o666)
	if err != nil {
		os.Exit(9)
	}
	got := make(chan os.Signal, 1000)
	signal.Notify(got)
	fmt.Fprintf(log, "pid %d\n", os.Getpid())
	for s := range got {
		if s != unix.SIGURG { // Go's own
			fmt.Fprintf(log, "%d\n", int(s.(syscall.Signal)))
		}
	}
}

// childTerminal says which of 0, 1 and 2 are terminals, and how large.
func childTerminal(args []string) {
	var b strings.Builder
	for fd := range 3 {
		if ws, err := unix.IoctlGetWinsize(fd, unix.TIOCGWINSZ); err == nil {
			fmt.Fprintf(&b, "%d:%dx%d ", fd, ws.Row, ws.Col)
		}
	}
	_ = os.WriteFile(args[0], []byte(b.String()), 0o666)
	if len(args) > 1 { // wait for another size
		for range 2000 {
			if ws, err := unix.IoctlGetWinsize(2, unix.TIOCGWINSZ); err == nil && fmt.Sprintf("%dx%d", ws.Row, ws.Col) == args[1] {
				_ = os.WriteFile(args[0], []byte("resized"), 0o666)
				return
			}
			time.Sleep(5 * time.Millisecond)
		}
	}
}
