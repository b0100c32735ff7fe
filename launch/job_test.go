package launch_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

// screen is a terminal with a command in it, and all that it showed.
type screen struct {
	t    *testing.T
	tty  *os.File
	cmd  *exec.Cmd
	mu   sync.Mutex
	text strings.Builder
	end  chan struct{}
}

func newScreen(t *testing.T, c *exec.Cmd) *screen {
	t.Helper()
	c.SysProcAttr = nil // pty.StartWithSize makes the session
	c.Env = append(c.Env, "PS1=ready> ", "HISTFILE=", "TERM=dumb")
	tty, err := pty.StartWithSize(c, &pty.Winsize{Rows: 33, Cols: 91})
	if err != nil {
		t.Fatal(err)
	}
	s := &screen{t: t, tty: tty, cmd: c, end: make(chan struct{})}
	go func() { // ends when the last process has closed the terminal
		defer close(s.end)
		buf := make([]byte, 4096)
		for {
			n, err := tty.Read(buf)
			s.mu.Lock()
			s.text.Write(buf[:n])
			s.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() {
		_ = unix.Kill(-c.Process.Pid, unix.SIGKILL)
		_ = c.Process.Kill()
		_ = c.Wait()
		_ = tty.Close()
		<-s.end
	})
	return s
}

func (s *screen) shown() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

func (s *screen) keys(k string) {
	if _, err := s.tty.WriteString(k); err != nil {
		s.t.Fatal(err)
	}
}

// await waits until the text was shown n times.
func (s *screen) await(text string, n int) {
	s.t.Helper()
	for range 3000 {
		if strings.Count(s.shown(), text) >= n {
			return
		}
		_ = unix.Nanosleep(&unix.Timespec{Nsec: 5e6}, nil)
	}
	s.t.Fatalf("%q was not shown %d times in %q", text, n, s.shown())
}

// foreground waits until the terminal belongs to the shell, or to a job of it that
// runs: a Ctrl-Z before the shell has sent CONT is lost for any job.
func (s *screen) foreground(shell bool) {
	s.t.Helper()
	group := 0
	for range 3000 {
		var err error
		if group, err = unix.IoctlGetInt(int(s.tty.Fd()), unix.TIOCGPGRP); err != nil {
			s.t.Fatal(err)
		}
		if group == s.cmd.Process.Pid {
			if shell && strings.HasSuffix(s.shown(), "ready> ") { // what is typed before that may be flushed
				return
			}
		} else if !shell && state(group) != "T" {
			// For zlexec to catch stops again: one at once, faster than by hand, may stop
			// it before its command, which then may take the next key.
			_ = unix.Nanosleep(&unix.Timespec{Nsec: 1e8}, nil)
			return
		}
		_ = unix.Nanosleep(&unix.Timespec{Nsec: 5e6}, nil)
	}
	s.t.Fatalf("the terminal belongs to %d (%s), the shell is %d: %q", group, state(group), s.cmd.Process.Pid, s.shown())
}

// shell is a real interactive bash, in which $Z is zlexec.
func shell(t *testing.T, flags ...string) *screen {
	t.Helper()
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("no bash for job control")
	}
	c := exec.Command("bash", "--norc", "--noprofile", "-i")
	c.Env = append(os.Environ(), "Z="+strings.Join(prefix(t, flags...), " "))
	s := newScreen(t, c)
	s.await("ready> ", 1)
	return s
}

func TestJobControl(t *testing.T) {
	t.Parallel()
	for _, flags := range ways {
		t.Run(strings.Join(append([]string{"flags"}, flags...), " "), func(t *testing.T) {
			t.Parallel()
			log := filepath.Join(t.TempDir(), "log")
			s := shell(t, flags...)

			// Ctrl-C reaches the command once, and ends a loop of the shell.
			s.keys(`for i in 1 2 3; do $Z sh -c 'trap "echo INT >>$0; trap - INT; kill -INT \$\$" INT; echo on$((1+1)); while :; do sleep 0.05; done' ` + log + "; done\n")
			s.await("on2", 1)
			s.keys("\x03")
			s.await("ready> ", 2)
			if got := read(log); got != "INT\n" || strings.Count(s.shown(), "on2") != 1 {
				t.Errorf("Ctrl-C: the command noted %q, and started %d times", got, strings.Count(s.shown(), "on2"))
			}

			// Ctrl-Z stops it for the shell, fg goes on, twice; then its own code.
			s.keys(`$Z sh -c 'echo go$((1+1)); read line; echo got $line; exit 7'` + "\n")
			s.await("go2", 1)
			for i := range 2 {
				s.keys("\x1a")
				s.await("Stopped", i+1)
				s.foreground(true)
				s.keys("fg\n")
				s.foreground(false)
			}
			s.keys("words\n")
			s.await("got words", 1)
			s.keys("echo code $?\n")
			s.await("code 7", 1)

			// (The command forks nothing: a shell that is stopped between vfork and
			// exec of its child waits for the child, and never stops itself.)
			if err := unix.Mkfifo(log+".go", 0o666); err != nil {
				t.Fatal(err)
			}

			// bg lets it go on in the background; a background read stops it again.
			s.keys(`$Z sh -c 'echo bg$((1+1)); read go <` + log + `.go; echo went on; read line; echo read $line'` + "\n")
			s.await("bg2", 1)
			s.keys("\x1a")
			s.await("Stopped", 3)
			s.foreground(true)
			s.keys("bg\n")
			if err := os.WriteFile(log+".go", []byte("go\n"), 0o666); err != nil {
				t.Fatal(err)
			}
			s.await("went on", 1)
			eventuallyShown(s, "jobs\n", "Stopped", 4)
			s.keys("fg\n")
			s.foreground(false)
			s.keys("more\n")
			s.await("read more", 1)

			// Ctrl-\ is a death that the shell names; the terminal is as it was.
			s.foreground(true)
			s.keys("$Z sh -c 'echo q$((1+1)); exec sleep 60'\n")
			s.await("q2", 1)
			s.keys("\x1c")
			s.await("Quit", 1)
			s.foreground(true)
			s.keys("stty -a | grep -c -- '-icanon'; echo done$((1+1))\n")
			s.await("done2", 1)
		})
	}
}

// eventuallyShown types keys again and again until the text was shown n times.
func eventuallyShown(s *screen, keys, text string, n int) {
	s.t.Helper()
	eventually(s.t, text, func() bool {
		if strings.Count(s.shown(), text) >= n {
			return true
		}
		s.keys(keys)
		_ = unix.Nanosleep(&unix.Timespec{Nsec: 2e8}, nil)
		return strings.Count(s.shown(), text) >= n
	})
}

func TestTerminal(t *testing.T) {
	t.Parallel()
	for _, flags := range ways {
		file := filepath.Join(t.TempDir(), "tty")
		s := newScreen(t, self(prefix(t, flags...), "terminal", file, "40x120"))
		eventually(t, "three terminals of one size", func() bool { return read(file) == "0:33x91 1:33x91 2:33x91 " })
		if err := pty.Setsize(s.tty, &pty.Winsize{Rows: 40, Cols: 120}); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the new size", func() bool { return read(file) == "resized" })
	}
	// What is no terminal does not become one.
	file := filepath.Join(t.TempDir(), "tty")
	c := self(prefix(t), "terminal", file)
	finish(t, c)
	if got := read(file); got != "" {
		t.Errorf("without a terminal: %q", got)
	}
}

// TestTerminalBytes: newlines are translated once, bars and colours arrive as the
// program made them, as with the bare command.
func TestTerminalBytes(t *testing.T) {
	t.Parallel()
	programs := [][]string{{"sh", "-c", `printf 'a\nb\r\nc\t\033[1md\033[0m\n\n' >&2; sleep 0.2; printf 'out\n'; sleep 0.2; printf 'err\n' >&2; exit 3`}}
	if _, err := os.Stat("/usr/bin/python3"); err == nil {
		programs = append(programs,
			[]string{"/usr/bin/python3", "-c", `
import shutil, sys
width = shutil.get_terminal_size().columns
for i in range(0, 101, 5):
    sys.stderr.write("\r%3d%%|%s|" % (i, ("#" * (i * (width - 10) // 100)).ljust(width - 10)))
    sys.stderr.flush()
print(sys.stderr.isatty(), file=sys.stderr)
raise ValueError("in colour where python has colours")`})
	} else {
		t.Log("no /usr/bin/python3: a bar and a traceback of python are not tried")
	}
	for _, program := range programs {
		show := func(pre []string) string {
			s := newScreen(t, command(pre, program...))
			_ = s.cmd.Wait()
			<-s.end
			return fmt.Sprintf("%q %s", s.shown(), status(s.cmd))
		}
		bare := show(nil)
		for _, flags := range ways {
			if got := show(prefix(t, flags...)); got != bare {
				t.Errorf("%q:\n got %s\nbare %s", flags, got, bare)
			}
		}
	}
}

// TestHangup: when the terminal goes away, so does the command.
func TestHangup(t *testing.T) {
	t.Parallel()
	log := filepath.Join(t.TempDir(), "pid")
	c := command(prefix(t), "sh", "-c", `echo $$ >"$0"; while :; do sleep 0.05; done`, log)
	c.SysProcAttr = nil
	tty, err := pty.Start(c)
	if err != nil {
		t.Fatal(err)
	}
	pid := 0
	eventually(t, "the start", func() bool { _, err := fmt.Sscan(read(log), &pid); return err == nil })
	_ = tty.Close()
	eventually(t, "the end", func() bool { return state(pid) == "" })
	_ = c.Wait()
}
