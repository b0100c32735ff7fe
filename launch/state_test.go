package launch_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// ways are the ways in which zlexec may stand before a command.
var ways = [][]string{nil, {"--scan", "both"}, {"--exec"}}

// sameLine runs a shell's line, in which "$@" is zlexec and its flags, as same does.
// Its $0 is a fresh folder each time.
func sameLine(t *testing.T, line string) {
	t.Helper()
	same(t, func(pre []string) *exec.Cmd {
		return command(nil, append([]string{"sh", "-c", line, t.TempDir()}, orEnv(pre)...)...)
	})
}

func TestSurroundings(t *testing.T) {
	t.Parallel()
	for _, line := range []string{
		// The working directory is gone; few descriptors are left.
		`mkdir "$0/gone"; cd "$0/gone"; rmdir "$0/gone"; exec "$@" /bin/echo ran`,
		`ulimit -n 16; exec "$@" sh -c 'ulimit -n; exit 3'`,
		// The name by which the command was called is its own.
		`exec "$@" cat /proc/self/cmdline | tr '\0' ' '`,
		// What is not read is left to the next, and what was written before is not overwritten.
		`{ "$@" sh -c 'echo 1 >&2'; echo 2 >&2; "$@" sh -c 'echo 3 >&2; echo 4'; } >"$0/log" 2>&1; cat "$0/log"`,
		`echo 0 >"$0/log"; "$@" sh -c 'echo 1 >&2' 2>>"$0/log"; cat "$0/log"`,
		`head -c 20000000 /dev/urandom >"$0/in"; "$@" cmp "$0/in" - <"$0/in"`,
		// Orphans go where they would go without zlexec, and it leaves no zombie of them.
		`"$@" sh -c '(sleep 60 >/dev/null 2>&1 & echo $! >"$0/pid"); cut -d" " -f4 "/proc/$(cat "$0/pid")/stat"; kill "$(cat "$0/pid")"' "$0"`,
		// A command without a core of its own: zlexec, which dies of the same signal, leaves none either.
		`cd "$0"; ulimit -Sc "$(ulimit -Hc)"; "$@" sh -c 'ulimit -Sc 0; kill -ABRT $$'; echo $?; ls`,
		`cd "$0"; ulimit -Sc "$(ulimit -Hc)"; "$@" sh -c 'ulimit -Sc 0; kill -SEGV $$'; echo $?; ls`,
	} {
		sameLine(t, line)
	}
	for _, flags := range ways {
		if got := environment(t, prefix(t, flags...), []string{}); strings.Contains(got, "PATH=") {
			t.Errorf("%q: an empty environment became %q", flags, got)
		}
	}
}

// TestChildSignal: a caller that ignores or blocks SIGCHLD makes some shims wait for ever.
func TestChildSignal(t *testing.T) {
	t.Parallel()
	if err := exec.Command("env", "--ignore-signal=CHLD", "--block-signal=CHLD", "true").Run(); err != nil {
		t.Skip("this env cannot ignore or block signals: ", err)
	}
	for _, how := range []string{"ignore", "block"} {
		sameLine(t, `exec env --`+how+`-signal=CHLD "$@" sh -c 'sh -c "exit 3"; echo $?; echo err >&2; exit 5'`)
	}
}

func TestLookupGoesOn(t *testing.T) {
	t.Parallel()
	// execvp(3) looks further when what it found cannot be started for want of its interpreter.
	sameLine(t, `mkdir "$0/a" "$0/b"; printf '#!/no/such/interpreter\n' >"$0/a/prog"; printf '#!/bin/sh\nexit 21\n' >"$0/b/prog"
		chmod +x "$0/a/prog" "$0/b/prog"; PATH="$0/a:$0/b:$PATH"; exec "$@" prog`)
}

func TestManyArguments(t *testing.T) {
	t.Parallel()
	short := make([]string, 50000)
	for i := range short {
		short[i] = "word"
	}
	long := make([]string, 19) // 1.9 of the 2 MiB that Linux allows with the usual 8 MiB of stack
	for i := range long {
		long[i] = strings.Repeat("x", 100000)
	}
	for _, args := range [][]string{short, long} {
		same(t, func(pre []string) *exec.Cmd {
			return command(pre, append([]string{"sh", "-c", `echo $# "${#1}"`, "sh"}, args...)...)
		})
	}
}

// TestUsage: what the command used is what the caller's wait shows.
func TestUsage(t *testing.T) {
	t.Parallel()
	for _, flags := range ways {
		c := command(prefix(t, flags...), "sh", "-c", "head -c 90000000 /dev/zero | tail -c 70000000 >/dev/null")
		finish(t, c)
		usage, ok := c.ProcessState.SysUsage().(*syscall.Rusage)
		if !ok || usage.Maxrss < 60<<10 {
			t.Errorf("%q: a command of 70 MB is shown with %d KiB", flags, usage.Maxrss)
		}
	}
}

func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	var all []*exec.Cmd
	for i := range 40 {
		c := command(prefix(t, ways[i%3]...), "sh", "-c", fmt.Sprintf("echo %d >&2; exit %d", i, i))
		c.Stderr = new(strings.Builder)
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		all = append(all, c)
	}
	for i, c := range all {
		_ = c.Wait()
		if got := fmt.Sprint(c.Stderr, status(c)); got != fmt.Sprintf("%d\nexit %d", i, i) {
			t.Errorf("run %d: %q", i, got)
		}
	}
}

// TestExitsEverywhere: codes and silence also where TestExitCodes does not look.
func TestExitsEverywhere(t *testing.T) {
	t.Parallel()
	for _, code := range []int{0, 1, 2, 77, 80, 82, 124, 125, 126, 127, 128, 129, 137, 254, 255} {
		same(t, func(pre []string) *exec.Cmd { return command(pre, "sh", "-c", fmt.Sprintf("exit %d", code)) })
	}
}

// TestNotScannedIsTheSameFile: also its place in the file, and its flags.
func TestNotScannedIsTheSameFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	in, err := os.Create(filepath.Join(dir, "in"))
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := os.Create(filepath.Join(dir, "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	if _, err := in.WriteString("passed over\nread by the command\n"); err != nil {
		t.Fatal(err)
	}
	for _, pre := range [][]string{nil, prefix(t), prefix(t, "--exec")} {
		if _, err := in.Seek(12, 0); err != nil {
			t.Fatal(err)
		}
		c := command(pre, "sh", "-c", `in=$(readlink /proc/$$/fd/0) out=$(readlink /proc/$$/fd/1); echo "$in $out" >&2; cat; cat /proc/$$/fdinfo/0`)
		c.Stdin, c.Stdout = in, out
		if got := finish(t, c); got.stderr != in.Name()+" "+out.Name()+"\n" {
			t.Errorf("%q: %+v", pre, got)
		}
		if !strings.Contains(read(out.Name()), "read by the command\npos:\t32\n") {
			t.Errorf("%q: wrote %q", pre, read(out.Name()))
		}
		if err := out.Truncate(0); err != nil {
			t.Fatal(err)
		}
	}
}

// TestInheritedSocket: a process manager (PMI) talks to the command over a descriptor.
func TestInheritedSocket(t *testing.T) {
	t.Parallel()
	for _, flags := range ways {
		pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		ours, theirs := os.NewFile(uintptr(pair[0]), "ours"), os.NewFile(uintptr(pair[1]), "theirs")
		c := command(prefix(t, flags...), "sh", "-c", `read word <&3; echo "got $word" >&3; exec 3>&-; read rest`)
		c.ExtraFiles = []*os.File{theirs}
		stdin, err := c.StdinPipe()
		if err != nil || c.Start() != nil {
			t.Fatal(err)
		}
		theirs.Close()
		fmt.Fprintln(ours, "hello")
		buf := make([]byte, 100)
		n, _ := ours.Read(buf)
		m, err := ours.Read(buf[n:]) // the command closed its copy; zlexec must have none
		if string(buf[:n]) != "got hello\n" || m != 0 {
			t.Errorf("%q: %q, then %d, %v", flags, buf[:n], m, err)
		}
		stdin.Close()
		_ = c.Wait()
		ours.Close()
	}
}

func TestJobserver(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("make"); err != nil {
		t.Skip("no make for its jobserver")
	}
	sameLine(t, `cd "$0"; printf 'all:\n\t+@$(Z) $(MAKE) --no-print-directory -f sub\n' >Makefile; printf 'all: a b c\na b c:\n\t@echo made\n' >sub; make -j3 Z="$*"`)
}

// TestCallerEnds: the command outlives whoever started zlexec.
func TestCallerEnds(t *testing.T) {
	t.Parallel()
	for _, flags := range ways {
		dir := t.TempDir()
		line := `"$@" sh -c 'while [ ! -e "$0/go" ]; do sleep 0.05; done; echo lives >"$0/done"' "$0" </dev/null >/dev/null 2>&1 & exit 4`
		if got := finish(t, command(nil, append([]string{"sh", "-c", line, dir}, prefix(t, flags...)...)...)); got.status != "exit 4" {
			t.Errorf("%q: %+v", flags, got)
		}
		if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o666); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the command's own end", func() bool { return read(filepath.Join(dir, "done")) == "lives\n" })
	}
}
