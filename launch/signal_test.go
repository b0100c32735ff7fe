package launch_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// recorder is a command that notes the signals it gets, and zlexec before it.
type recorder struct {
	*exec.Cmd
	log string
	pid int // the command's own
}

// record starts one, and returns when it listens and its sentinel is there.
func record(t *testing.T, pre []string) *recorder {
	t.Helper()
	r := &recorder{log: filepath.Join(t.TempDir(), "log")}
	r.Cmd = self(pre, "recorder", r.log)
	if err := r.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = r.Process.Kill()
		_ = r.Wait()
	})
	eventually(t, "the command", func() bool { _, err := fmt.Sscanf(read(r.log), "pid %d\n", &r.pid); return err == nil })
	eventually(t, "the sentinel", func() bool { return below(r.Process.Pid)["zlexec-sentinel"] != 0 })
	return r
}

// got returns the signals noted so far, blanks between.
func (r *recorder) got() string {
	_, list, _ := strings.Cut(read(r.log), "\n")
	return strings.Join(strings.Fields(list), " ")
}

// want waits for exactly these signals, and then a while for one too many.
func (r *recorder) want(t *testing.T, what, list string) {
	t.Helper()
	eventually(t, what, func() bool { return len(r.got()) >= len(list) })
	time.Sleep(100 * time.Millisecond) // well above what zlexec waits before it forwards
	if got := r.got(); got != list {
		t.Errorf("%s: the command got %q, want %q", what, got, list)
	}
}

// forwarded are the signals that zlexec hands on. STOP and KILL cannot be caught,
// faults and URG are the Go runtime's own (docs/transparency.md).
func forwarded() []int {
	list := []int{1, 2, 3, 6, 10, 12, 14, 15, 16, 18, 24, 25, 26, 27, 28, 29, 30}
	for n := 34; n <= 64; n++ {
		list = append(list, n)
	}
	return list
}

func TestForwardedOnce(t *testing.T) {
	t.Parallel()
	for _, flags := range [][]string{nil, {"--scan", "both"}} {
		r := record(t, prefix(t, flags...))
		list := ""
		for _, n := range forwarded() {
			if n == 34 || n == 27 { // Go programs, such as the recorder, cannot note these two
				continue
			}
			_ = r.Process.Signal(syscall.Signal(n))
			list = strings.TrimSpace(list + " " + strconv.Itoa(n))
			r.want(t, "signal "+strconv.Itoa(n), list)
		}
	}
	for _, n := range []int{34, 27} {
		c := command(prefix(t), "sleep", "60")
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the command", func() bool { return below(c.Process.Pid)["sleep"] != 0 })
		_ = c.Process.Signal(syscall.Signal(n))
		_ = c.Wait()
		if want := fmt.Sprintf("signal %d", n); status(c) != want {
			t.Errorf("%s, want %s", status(c), want)
		}
	}
}

func TestGroupOnce(t *testing.T) {
	t.Parallel()
	r := record(t, prefix(t))
	list := ""
	for _, n := range []int{2, 15, 10, 1, 2, 2} {
		if err := unix.Kill(-r.Process.Pid, syscall.Signal(n)); err != nil {
			t.Fatal(err)
		}
		list = strings.TrimSpace(list + " " + strconv.Itoa(n))
		r.want(t, "a signal to the group", list)
		eventually(t, "a fresh sentinel", func() bool { return below(r.Process.Pid)["zlexec-sentinel"] != 0 })
	}
	// One after that to zlexec alone is not taken for the group's.
	_ = r.Process.Signal(unix.SIGINT)
	r.want(t, "a direct signal", list+" 2")
	_ = unix.Kill(-r.Process.Pid, unix.SIGKILL)
	eventually(t, "the end of the command", func() bool { return state(r.pid) == "" })
}

// TestOneByOneOnce: a sender that goes through a list of the processes that it made
// before, as slurmstepd does, and meets a sentinel that was replaced since.
func TestOneByOneOnce(t *testing.T) {
	t.Parallel()
	r := record(t, prefix(t))
	first := below(r.Process.Pid)["zlexec-sentinel"]
	list := ""
	for _, n := range []syscall.Signal{unix.SIGUSR1, unix.SIGUSR2, unix.SIGTERM} {
		for _, pid := range []int{r.Process.Pid, first, r.pid} {
			_ = unix.Kill(pid, n)
		}
		list = strings.TrimSpace(fmt.Sprint(list, " ", int(n)))
		r.want(t, "a signal to one after the other", list)
	}
}

func TestNestedOnce(t *testing.T) {
	t.Parallel()
	r := record(t, append(prefix(t), prefix(t)...))
	_ = r.Process.Signal(unix.SIGUSR1)
	r.want(t, "through two", "10")
	_ = unix.Kill(-r.Process.Pid, unix.SIGUSR2)
	r.want(t, "to the group of two", "10 12")
}

func TestKilledTogether(t *testing.T) {
	t.Parallel()
	r := record(t, prefix(t))
	sentinel := below(r.Process.Pid)["zlexec-sentinel"]
	_ = r.Process.Kill()
	_ = r.Wait()
	eventually(t, "the end of the command and the sentinel", func() bool { return state(r.pid)+state(sentinel) == "" })
}

func TestDeathBySignal(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 24, 25, 26, 27, 29, 30, 31, 34, 64} {
		line := fmt.Sprintf("ulimit -c 0; printf 'last words' >&2; kill -%d $$", n)
		want := result{stderr: "last words", status: fmt.Sprintf("signal %d", n)}
		for _, flags := range ways {
			if got := finish(t, command(prefix(t, flags...), "sh", "-c", line)); got != want {
				t.Errorf("%q: %+v, want %+v", flags, got, want)
			}
		}
	}
}

// TestStartIsNoGap: TERM in the first moments ends both, whatever has started.
func TestStartIsNoGap(t *testing.T) {
	t.Parallel()
	for delay := range 24 {
		c := command(prefix(t), "sleep", "60")
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(delay) * 250 * time.Microsecond)
		group := c.Process.Pid
		_ = c.Process.Signal(unix.SIGTERM)
		_ = c.Wait()
		if status(c) != "signal 15" {
			t.Errorf("after %d: %s", delay, status(c))
		}
		eventually(t, "an empty group", func() bool { return unix.Kill(-group, 0) != nil })
	}
}

func TestStopsAndGoesOn(t *testing.T) {
	t.Parallel()
	// The group must not be orphaned, or the kernel drops terminal stops: its
	// parent is a shell in the same session.
	log := filepath.Join(t.TempDir(), "ticks")
	shell := command(nil, append([]string{"bash", "-c", `set -m; "$@" & echo $!; sleep 120`, "bash"},
		append(prefix(t), "sh", "-c", `while :; do echo >>"$0"; sleep 0.02; done`, log)...)...)
	out, err := shell.StdoutPipe()
	if err != nil || shell.Start() != nil {
		t.Fatal(err)
	}
	var pid int
	if _, err := fmt.Fscan(out, &pid); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = unix.Kill(-pid, unix.SIGKILL)
		_ = unix.Kill(-shell.Process.Pid, unix.SIGKILL)
		_ = shell.Wait()
	}()
	eventually(t, "ticks", func() bool { return len(read(log)) > 2 })
	eventually(t, "the sentinel", func() bool { return below(pid)["zlexec-sentinel"] != 0 })
	for range 2 {
		if err := unix.Kill(pid, unix.SIGTSTP); err != nil {
			t.Fatal(err)
		}
		eventually(t, "both stopped", func() bool { return state(pid) == "T" && state(below(pid)["sh"]) == "T" })
		n := len(read(log))
		if err := unix.Kill(pid, unix.SIGCONT); err != nil {
			t.Fatal(err)
		}
		eventually(t, "more ticks", func() bool { return len(read(log)) > n+2 })
	}
}

func TestTimeout(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	run := func(flags []string, line string) result {
		return finish(t, command(prefix(t, flags...), "sh", "-c", line, dir))
	}
	if got := run([]string{"--timeout", "200ms"}, "sleep 60"); got.status != "exit 124" {
		t.Errorf("TERM: %+v", got)
	}
	if got := run([]string{"--timeout", "200ms", "--grace", "200ms"}, "trap '' TERM; while :; do sleep 0.1; done"); got.status != "exit 124" {
		t.Errorf("KILL: %+v", got)
	}
	if got := run([]string{"--timeout", "200ms"}, "trap 'echo cleaned; exit 0' TERM; while :; do sleep 0.1; done"); got.status != "exit 124" || got.stdout != "cleaned\n" {
		t.Errorf("a command that cleans up: %+v", got)
	}
	if got := run([]string{"--timeout", "60s"}, "exit 4"); got.status != "exit 4" {
		t.Errorf("in time: %+v", got)
	}
	// What is below the command ends, in its group; a neighbour in the group lives.
	line := `sleep 300 >/dev/null 2>&1 & echo $! >"$0/neighbour"; shift; exec "$@"`
	c := command(nil, append([]string{"sh", "-c", line, dir, "x"}, append(prefix(t, "--timeout", "300ms"),
		"sh", "-c", `(sleep 301 & echo $! >"$0/grandchild"; wait) & wait`, dir)...)...)
	if got := finish(t, c); got.status != "exit 124" {
		t.Errorf("a tree: %+v", got)
	}
	pid := func(name string) int {
		n, _ := strconv.Atoi(strings.TrimSpace(read(filepath.Join(dir, name))))
		return n
	}
	eventually(t, "the grandchild's end", func() bool { return state(pid("grandchild")) == "" })
	if state(pid("neighbour")) == "" {
		t.Error("a neighbour in the process group was ended too")
	}
	_ = unix.Kill(pid("neighbour"), unix.SIGKILL)
	if got := finish(t, command(nil, append([]string{"timeout", "0.3"}, append(prefix(t), "sleep", "60")...)...)); got.status != "exit 124" {
		t.Errorf("under coreutils timeout: %+v", got)
	}
}

func TestNothingIsLeft(t *testing.T) {
	t.Parallel()
	// A graceful end of its own after TERM is waited for, and shown.
	r := filepath.Join(t.TempDir(), "ready")
	c := command(prefix(t), "sh", "-c", `trap 'sleep 0.3; echo cleaned >&2; exit 42' TERM; : >"$0"; while :; do sleep 0.05; done`, r)
	var errs strings.Builder
	c.Stderr = &errs
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the start", func() bool { _, err := os.Stat(r); return err == nil })
	_ = c.Process.Signal(unix.SIGTERM)
	_ = c.Wait()
	if status(c) != "exit 42" || !strings.Contains(errs.String(), "cleaned") {
		t.Errorf("%s, %q", status(c), errs.String())
	}
	if err := unix.Kill(-c.Process.Pid, 0); err == nil {
		t.Error("something of the group is left")
	}
}
