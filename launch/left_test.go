package launch_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestLateOutputOutlivesSignals: what the command left behind ignores the signals
// that end a session, as under nohup; its late lines must still find a reader.
func TestLateOutputOutlivesSignals(t *testing.T) {
	t.Parallel()
	for _, flags := range [][]string{nil, {"--scan", "both"}} {
		dir := t.TempDir()
		line := `(trap "" HUP INT QUIT TERM; while [ ! -e "$0/go" ]; do sleep 0.05; done; echo late >&2; echo lives >"$0/done") & exit 3`
		c := command(prefix(t, flags...), "sh", "-c", line, dir)
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		c.Stdout, c.Stderr = w, w
		_ = c.Run()
		w.Close()
		if status(c) != "exit 3" {
			t.Error(status(c))
		}
		for _, sig := range []unix.Signal{unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM} {
			if err := unix.Kill(-c.Process.Pid, sig); err != nil {
				t.Errorf("the group is empty: %v", err)
			}
		}
		if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o666); err != nil {
			t.Fatal(err)
		}
		got := make([]byte, 100)
		n, _ := r.Read(got)
		if string(got[:n]) != "late\n" {
			t.Errorf("%q: late output %q", flags, got[:n])
		}
		// Bare, the writer would not die of a reader that is not zlexec's.
		eventually(t, "the end of what was left", func() bool { return unix.Kill(-c.Process.Pid, 0) != nil })
		if read(filepath.Join(dir, "done")) != "lives\n" {
			t.Errorf("%q: what was left behind died of its output", flags)
		}
		r.Close()
	}
}

// TestLateOutputIntoFullDisk: what cannot be written is lost to the writer alone.
func TestLateOutputIntoFullDisk(t *testing.T) {
	t.Parallel()
	sameLine(t, `"$@" sh -c '(sleep 0.8; head -c 9000 /dev/zero >&2; sleep 0.1; head -c 9000 /dev/zero >&2; echo lives >"$0/done") >/dev/null & exit 3' "$0" 2>/dev/full
		echo $?; for i in $(seq 100); do [ -e "$0/done" ] && break; sleep 0.05; done; cat "$0/done"`)
}

// TestTimeoutEndsAll: also what ignores TERM below a command that does not.
func TestTimeoutEndsAll(t *testing.T) {
	t.Parallel()
	for name, line := range map[string]string{
		"a child that ignores TERM":            `(trap "" TERM; exec sleep 300) & echo $! >"$0"; wait`,
		"a loop below, which ignores TERM":     `sh -c 'trap "" TERM; echo $$ >"$0"; while :; do sleep 0.1; done' "$0" & wait`,
		"a holder of stderr that ignores TERM": `(trap "" TERM; exec sleep 300 >&2) & echo $! >"$0"; exec sleep 300`,
		"a stopped child":                      `sh -c 'echo $$ >"$0"; kill -STOP $$; sleep 300' "$0" & wait`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "pid")
			c := command(prefix(t, "--timeout", "1s", "--grace", "300ms"), "sh", "-c", line, file)
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			pid := 0
			eventually(t, "the start", func() bool { _, err := fmt.Sscan(read(file), &pid); return err == nil })
			t.Cleanup(func() { _ = unix.Kill(-c.Process.Pid, unix.SIGKILL) })
			_ = c.Wait()
			if status(c) != "exit 124" {
				t.Error(status(c))
			}
			eventually(t, "the end of "+name, func() bool { return state(pid) == "" })
		})
	}
}

// TestNoSignalUnasked: a command under much output gets no signal that nobody sent,
// such as those that Go's runtime sends to itself.
func TestNoSignalUnasked(t *testing.T) {
	t.Parallel()
	var traps strings.Builder
	for n := 1; n <= 64; n++ {
		switch n {
		case 9, 17, 19, 32, 33: // KILL and STOP cannot be caught, CHLD is the shell's own
		default:
			fmt.Fprintf(&traps, `trap "echo %d >>'$0'" %d; `, n, n)
		}
	}
	for _, flags := range [][]string{nil, {"--scan", "both"}} {
		log := filepath.Join(t.TempDir(), "log")
		c := command(prefix(t, flags...), "sh", "-c", traps.String()+`i=0; while [ $i -lt 30 ]; do head -c 1000000 /dev/zero >&2; i=$((i+1)); done; exit 8`, log)
		c.Stderr = discard(t)
		if got := finish(t, c); got.status != "exit 8" || read(log) != "" {
			t.Errorf("%q: %s, signals %q", flags, got.status, read(log))
		}
	}
}

// discard is a pipe whose other end is read and thrown away.
func discard(t *testing.T) *os.File {
	t.Helper()
	c := exec.Command("cat")
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	c.Stdin = r
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	r.Close()
	t.Cleanup(func() {
		w.Close()
		_ = c.Wait()
	})
	return w
}

// TestGroupOnceEverywhere is TestGroupOnce with stdout relayed too, and through two.
func TestGroupOnceEverywhere(t *testing.T) {
	t.Parallel()
	for _, pre := range [][]string{prefix(t, "--scan", "both"), append(prefix(t), prefix(t, "--scan", "both")...)} {
		r := record(t, pre)
		_ = unix.Kill(-r.Process.Pid, unix.SIGTERM)
		r.want(t, "a signal to the group", "15")
		_ = unix.Kill(-r.Process.Pid, unix.SIGKILL)
		eventually(t, "the end of the command", func() bool { return state(r.pid) == "" })
	}
}

// TestFileSizeLimit: the limit that the command's own write would have hit.
func TestFileSizeLimit(t *testing.T) {
	t.Parallel()
	sameLine(t, `ulimit -f 16; "$@" sh -c 'trap "" XFSZ; i=0; while [ $i -lt 3000 ]; do echo line $i >&2; i=$((i+1)); done; exit 5' 2>"$0/log"; echo $?; wc -c <"$0/log"`)
}
