package launch_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

// eachWay runs a test in an interactive shell for each of ways.
func eachWay(t *testing.T, test func(t *testing.T, s *screen)) {
	for _, flags := range ways {
		t.Run(strings.Join(append([]string{"flags"}, flags...), " "), func(t *testing.T) {
			t.Parallel()
			test(t, shell(t, flags...))
		})
	}
}

// code waits for the shell, and wants this code of the last command.
func (s *screen) code(want int) {
	s.t.Helper()
	s.foreground(true)
	n := strings.Count(s.shown(), "code ")
	s.keys("echo code $?\n")
	s.await("code ", n+2) // once typed, once printed
	s.await(fmt.Sprintf("code %d\r\n", want), 1)
}

// fg brings the stopped job to the foreground, and wants it to show this and to end
// with this code.
func (s *screen) fg(text string, code int) {
	s.t.Helper()
	s.foreground(true)
	s.keys("fg\n")
	s.await(text, 1)
	s.code(code)
}

// TestHangupAtOnce: a terminal that goes away tells its session's leader alone,
// which may be a zlexec that has only just started.
func TestHangupAtOnce(t *testing.T) {
	t.Parallel()
	for range 20 {
		c := command(prefix(t), "sh", "-c", "printf x; exec sleep 300")
		c.SysProcAttr = nil
		tty, err := pty.Start(c)
		if err != nil {
			t.Fatal(err)
		}
		group := c.Process.Pid
		t.Cleanup(func() { _ = unix.Kill(-group, unix.SIGKILL) })
		if _, err := tty.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		_ = tty.Close()
		eventually(t, "the end", func() bool { return state(group) == "" })
		_ = c.Wait()
		if status(c) != "signal 1" {
			t.Error(status(c))
		}
		eventually(t, "an empty group", func() bool { return unix.Kill(-group, 0) != nil })
	}
}

// TestStopsEachTime: on whatever thread the Go runtime has put its main goroutine,
// which with one processor is often another than the first.
func TestStopsEachTime(t *testing.T) {
	t.Parallel()
	for range 40 {
		c := command(prefix(t), "sh", "-c", "trap : USR1; sleep 0.02; kill -TSTP $$; exit 3")
		c.Env = append(c.Env, "GOMAXPROCS=1")
		c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // its parent, in the session, keeps it from being orphaned
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		pid := c.Process.Pid
		t.Cleanup(func() { _ = unix.Kill(-pid, unix.SIGKILL) })
		eventually(t, "the stop of zlexec", func() bool { return state(pid) == "T" })
		_ = unix.Kill(pid, unix.SIGCONT)
		_ = c.Wait()
		if status(c) != "exit 3" {
			t.Error(status(c))
		}
	}
}

// TestBackgroundWrite: "stty tostop" stops a background job that writes; zlexec
// writes in the command's place.
func TestBackgroundWrite(t *testing.T) {
	t.Parallel()
	eachWay(t, func(t *testing.T, s *screen) {
		s.keys("stty tostop\n")
		s.await("ready> ", 2)
		s.keys(`$Z sh -c 'echo stopped$((1+1)) >&2; exit 4' &` + "\n")
		eventuallyShown(s, "jobs -l\n", "Stopped", 1)
		if strings.Contains(s.shown(), "stopped2") {
			t.Error("it wrote in the background")
		}
		s.fg("stopped2", 4)
	})
}

// TestBackgroundWriteAllowed: a command that ignores that stop may write, and so
// must zlexec.
func TestBackgroundWriteAllowed(t *testing.T) {
	t.Parallel()
	eachWay(t, func(t *testing.T, s *screen) {
		s.keys("stty tostop\n")
		s.await("ready> ", 2)
		gate := filepath.Join(t.TempDir(), "go")
		s.keys(`$Z sh -c 'trap "" TTOU; echo ignored$((1+1)) >&2; while [ ! -e "$0" ]; do sleep 0.05; done' ` + gate + " &\n")
		s.await("ignored2", 1)
		if err := os.WriteFile(gate, nil, 0o666); err != nil {
			t.Fatal(err)
		}
		eventuallyShown(s, "jobs -l\n", "Done", 1)
	})
}

// TestLateBackgroundWrite: zlexec, stopped meanwhile, still has to write when the
// command has ended. Then the stop is its own.
func TestLateBackgroundWrite(t *testing.T) {
	t.Parallel()
	for _, flags := range [][]string{nil, {"--scan", "both"}} {
		s := shell(t, flags...)
		s.keys("stty tostop\n")
		s.await("ready> ", 2)
		s.keys(`$Z sh -c 'kill -STOP $PPID; echo late$((1+1)) >&2; exit 4' &` + "\n")
		eventuallyShown(s, "jobs -l\n", "Stopped", 1)
		s.keys("bg\n")
		eventuallyShown(s, "jobs -l\n", "(tty output)", 1)
		s.fg("late2", 4)
	}
}

// TestInterrupts: each key press and each signal by hand is one interrupt.
func TestInterrupts(t *testing.T) {
	t.Parallel()
	eachWay(t, func(t *testing.T, s *screen) {
		s.keys(`$Z sh -c 'n=0; trap "n=\$((n+1)); echo int=\$n" INT; echo on$((1+1)); while [ $n -lt 4 ]; do sleep 0.05; done; sleep 0.1; echo end=$n; exit 6'` + "\n")
		s.await("on2", 1)
		job, err := unix.IoctlGetInt(int(s.tty.Fd()), unix.TIOCGPGRP)
		if err != nil || job == s.cmd.Process.Pid {
			t.Fatalf("the foreground group is %d, %v", job, err)
		}
		for i := range 4 {
			if i%2 == 0 {
				s.keys("\x03")
			} else if err := unix.Kill(job, unix.SIGINT); err != nil { // to zlexec alone, from outside
				t.Fatal(err)
			}
			s.await(fmt.Sprintf("int=%d\r\n", i+1), 1)
			time.Sleep(50 * time.Millisecond) // two within 5 ms cannot be told apart
		}
		s.await("end=4", 1)
		s.code(6)
	})
}

func TestOtherStops(t *testing.T) {
	t.Parallel()
	eachWay(t, func(t *testing.T, s *screen) {
		// One that ignores Ctrl-Z is not stopped, nor is zlexec.
		s.keys(`$Z sh -c 'trap "" TSTP; echo on$((1+1)); read word; echo got=$word; exit 5'` + "\n")
		s.await("on2", 1)
		s.keys("\x1a")
		s.keys("word\n")
		s.await("got=word", 1)
		s.code(5)
		if strings.Contains(s.shown(), "Stopped") {
			t.Error("Ctrl-Z stopped a command that ignores it")
		}
		// One that stops itself is a stopped job.
		s.keys(`$Z sh -c 'kill -STOP $$; echo again$((1+1)) >&2; exit 9'` + "\n")
		s.await("Stopped", 1)
		s.fg("again2", 9)
		// A job of two, and a start in the background that takes nothing from the shell.
		s.keys(`$Z sh -c 'echo a; echo err$((1+1)) >&2; exec sleep 300' | $Z cat` + "\n")
		s.await("err2", 1)
		s.keys("\x03")
		s.code(130)
		s.keys("$Z sleep 300 &\n")
		s.foreground(true)
		s.keys("kill %%; wait %%; echo ended$((1+1))\n")
		s.await("ended2", 1)
	})
}

// TestTerminalIsUntouched: its settings and its foreground group.
func TestTerminalIsUntouched(t *testing.T) {
	t.Parallel()
	for _, flags := range ways {
		s := newScreen(t, command(prefix(t, flags...), "sh", "-c", "echo on >&2; read x"))
		master, slave, err := pty.Open()
		if err != nil {
			t.Fatal(err)
		}
		fresh, err := unix.IoctlGetTermios(int(slave.Fd()), unix.TCGETS)
		if err != nil {
			t.Fatal(err)
		}
		master.Close()
		slave.Close()
		s.await("on", 1)
		now, err := unix.IoctlGetTermios(int(s.tty.Fd()), unix.TCGETS)
		if err != nil || *now != *fresh {
			t.Errorf("%q: settings %+v, fresh %+v, %v", flags, now, fresh, err)
		}
		if group, err := unix.IoctlGetInt(int(s.tty.Fd()), unix.TIOCGPGRP); err != nil || group != s.cmd.Process.Pid {
			t.Errorf("%q: foreground group %d, %v", flags, group, err)
		}
		s.keys("\n")
	}
}

// TestRedirections: each of 0, 1 and 2 is a terminal for the command exactly where it
// is one without zlexec, and /dev/tty is the user's.
func TestRedirections(t *testing.T) {
	t.Parallel()
	report := `r=; for f in 0 1 2; do [ -t $f ] && r=$r$f; done; echo "tty $r" >"$0/report"; echo to the terminal >/dev/tty; echo out; sleep 0.1; echo err >&2`
	for _, where := range []string{"", `>"$0/f"`, `2>"$0/f"`, `>"$0/f" 2>&1`, `</dev/null`, `</dev/null >"$0/f"`} {
		show := func(pre []string) string {
			dir := t.TempDir()
			line := `"$@" sh -c '` + report + `' "$0" ` + where + `; echo "code $?"`
			s := newScreen(t, command(nil, append([]string{"sh", "-c", line, dir}, orEnv(pre)...)...))
			_ = s.cmd.Wait()
			<-s.end
			return fmt.Sprintf("%q %q %q", read(filepath.Join(dir, "report")), read(filepath.Join(dir, "f")), s.shown())
		}
		bare := show(nil)
		for _, flags := range ways {
			if got := show(prefix(t, flags...)); got != bare {
				t.Errorf("%s %q:\n got %s\nbare %s", where, flags, got, bare)
			}
		}
	}
}

// TestLastOutput: all that was written before the end is shown, also much of it.
func TestLastOutput(t *testing.T) {
	t.Parallel()
	want := new(strings.Builder)
	for i := range 20000 {
		fmt.Fprintf(want, "%d\r\n", i+1)
	}
	for _, flags := range ways {
		for _, fd := range []string{"1", "2"} {
			s := newScreen(t, command(prefix(t, flags...), "sh", "-c", "seq 20000 >&"+fd+"; exit 2"))
			_ = s.cmd.Wait()
			<-s.end
			if s.shown() != want.String() || status(s.cmd) != "exit 2" {
				t.Errorf("%q, descriptor %s: %d of %d bytes, %s", flags, fd, len(s.shown()), want.Len(), status(s.cmd))
			}
		}
	}
}

// TestLeftOnTerminal: what the command leaves behind still writes to the terminal.
func TestLeftOnTerminal(t *testing.T) {
	t.Parallel()
	eachWay(t, func(t *testing.T, s *screen) {
		gate := filepath.Join(t.TempDir(), "go")
		s.keys(`$Z sh -c '(while [ ! -e "$0" ]; do sleep 0.05; done; echo late$((1+1)) >&2) & exit 3' ` + gate + "\n")
		s.await("ready> ", 2)
		if err := os.WriteFile(gate, nil, 0o666); err != nil {
			t.Fatal(err)
		}
		s.await("late2", 1)
	})
}
