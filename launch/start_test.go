package launch_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestArguments(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"", " ", "a b", "\n", "'", "$HOME", "*", "a=b", "é", "\xff\xfe", "-", "%s"},
		{"--", "-h", "--help", "-b", "x", "--backend=y", "-q", "--", "--version"},
		{strings.Repeat("x", 100000), strings.Repeat("y", 100000)},
	} {
		same(t, func(pre []string) *exec.Cmd { return self(pre, "argv", args...) })
	}
	// The separator is optional, as it is for env, nice and timeout.
	file, err := built()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(file, "-q", "-b", "cpu", "sh", "-c", "echo $1", "sh", "--quiet")
	if got := finish(t, c); got.stdout != "--quiet\n" || got.status != "exit 0" {
		t.Errorf("without --: %+v", got)
	}
}

func TestExitCodes(t *testing.T) {
	t.Parallel()
	for code := range 256 {
		if got := finish(t, command(prefix(t), "sh", "-c", fmt.Sprintf("exit %d", code))); got != (result{status: fmt.Sprintf("exit %d", code)}) {
			t.Errorf("exit %d: %+v", code, got)
		}
	}
}

func TestLookup(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	write("bin/prog", "#!/bin/sh\nexit 13\n", 0o755)
	write("late/prog", "#!/bin/sh\nexit 14\n", 0o755)
	write("late/noexec", "#!/bin/sh\nexit 14\n", 0o755)
	write("bin/noexec", "#!/bin/sh\nexit 13\n", 0o644)
	write("here", "echo \"plain:$1\"\nexit 6\n", 0o755)
	write("badint", "#!/no/such/interpreter\n", 0o755)
	write("empty", "", 0o755)
	for _, tt := range []struct {
		path, command, status, stdout string
	}{
		{"bin:late:/bin", "prog", "exit 13", ""},
		{"/none:late:bin", "prog", "exit 14", ""},
		{"bin:late", "noexec", "exit 14", ""},
		{"bin", "noexec", "exit 126", ""},
		{":/bin", "here", "exit 6", "plain:x\n"},
		{"/bin:/usr/bin", "./here", "exit 6", "plain:x\n"},
		{"/bin", "here", "exit 127", ""},
		{"/bin", "./missing", "exit 127", ""},
		{"/bin", "./badint", "exit 126", ""},
		{"/bin", "./bin", "exit 126", ""},
		{"/bin", "./bin/noexec", "exit 126", ""},
		{"/bin", "./empty", "exit 0", ""},
		{"/bin", "", "exit 127", ""},
		{"(unset)", "true", "exit 0", ""},
	} {
		for _, flag := range []string{"--scan=auto", "--exec"} {
			c := command(prefix(t, flag), tt.command, "x")
			c.Dir, c.Env = dir, []string{"PATH=" + tt.path}
			if tt.path == "(unset)" {
				c.Env = []string{"A=b"}
			}
			got := finish(t, c)
			if got.status != tt.status || got.stdout != tt.stdout {
				t.Errorf("PATH=%s %s %q: %+v, want %s", tt.path, flag, tt.command, got, tt.status)
			}
			if own := strings.HasPrefix(tt.status, "exit 12"); own && !strings.HasPrefix(got.stderr, "zlexec: error: "+tt.command) {
				t.Errorf("%q: no message: %q", tt.command, got.stderr)
			}
		}
	}
}

// environment starts a command with exactly these entries, which os/exec would tidy.
func environment(t *testing.T, pre []string, environ []string) string {
	t.Helper()
	out, err := os.CreateTemp(t.TempDir(), "out")
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	argv := append(append([]string{}, pre...), "/bin/cat", "/proc/self/environ")
	pid, err := syscall.ForkExec(argv[0], argv, &syscall.ProcAttr{Env: environ, Files: []uintptr{0, out.Fd(), 2}})
	if err != nil {
		t.Fatal(err)
	}
	var ws syscall.WaitStatus
	if _, err := syscall.Wait4(pid, &ws, 0, nil); err != nil || ws != 0 {
		t.Fatalf("%q: %v, %v", argv, ws, err)
	}
	return read(out.Name())
}

func TestOddEnvironment(t *testing.T) {
	t.Parallel()
	odd := []string{"DUP=first", "EMPTY=", "NL=a\nb", "BIN=\xff\xfe", "DUP=second", "NOEQUALS", "=noname", "lower=x", "BASH_FUNC_f%%=() { :\n}", "HIP_VISIBLE_DEVICES=1", "LAST=1"}
	want := strings.ReplaceAll(strings.Join(odd, "\x00"), "HIP_VISIBLE_DEVICES=1\x00", "")
	for _, flag := range []string{"--scan=auto", "--exec"} {
		if got := environment(t, prefix(t, flag), odd); !strings.HasPrefix(got, want+"\x00") {
			t.Errorf("%s: got %q\nwant %q in front", flag, got, want)
		}
	}
}

func TestDescriptors(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	same(t, func(pre []string) *exec.Cmd { return self(pre, "files") })
	same(t, func(pre []string) *exec.Cmd {
		c := self(pre, "files")
		c.ExtraFiles = []*os.File{r, nil, nil, w} // 3 and 6
		return c
	})
	// Closed ones: the command runs, keeps its code, and no other file takes their place.
	for _, closed := range []string{"<&-", ">&-", "2>&-", "<&- >&- 2>&-"} {
		out := filepath.Join(t.TempDir(), "ran")
		line := `"$@" sh -c 'echo ran >` + out + `; exit 7' ` + closed
		got := finish(t, command(nil, append([]string{"sh", "-c", line, "sh"}, prefix(t)...)...))
		if got.status != "exit 7" || read(out) != "ran\n" || got.stdout+got.stderr != "" {
			t.Errorf("%s: %+v, ran %q", closed, got, read(out))
		}
	}
}

func TestSocketActivation(t *testing.T) {
	t.Parallel()
	line := `export LISTEN_FDS=1 LISTEN_PID=$$; exec "$@" sh -c 'test "$LISTEN_PID" = $$ && echo mine'`
	same(t, func(pre []string) *exec.Cmd {
		return command(nil, append([]string{"sh", "-c", line, "sh"}, orEnv(pre)...)...)
	})
}

func TestAttributes(t *testing.T) {
	t.Parallel()
	for _, line := range []string{
		`umask 137; cd /usr/share; exec "$@" sh -c 'umask; pwd; readlink /proc/self/cwd'`,
		`ulimit -Sn 333; ulimit -c 5; ulimit -t 1000; exec "$@" cat /proc/self/limits`,
		`exec nice -n 3 "$@" nice`,
		`echo 321 >/proc/self/oom_score_adj; exec "$@" cat /proc/self/oom_score_adj`,
		`exec taskset 1 "$@" grep -E 'Cpus_allowed|Mems|^Cap|NoNewPrivs|^Groups' /proc/self/status`,
		// What the caller ignores stays ignored (nohup, trap '' TERM, "cmd &" of sh).
		`trap '' HUP; exec "$@" grep SigIgn /proc/self/status`,
		`trap '' INT QUIT; exec "$@" grep SigIgn /proc/self/status`,
		`trap '' TERM USR1 USR2 ALRM PIPE XCPU WINCH TSTP TTIN TTOU; exec "$@" grep SigIgn /proc/self/status`,
		`exec "$@" grep -E 'Sig(Ign|Blk)' /proc/self/status`,
	} {
		same(t, func(pre []string) *exec.Cmd {
			return command(nil, append([]string{"sh", "-c", line, "sh"}, orEnv(pre)...)...)
		})
	}
}

func TestBlockedSignalsStayBlocked(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/usr/bin/python3"); err != nil {
		t.Skip("no /usr/bin/python3 to block signals with")
	}
	same(t, func(pre []string) *exec.Cmd {
		return command(nil, append(append([]string{"/usr/bin/python3", "-c",
			"import os,signal,sys; signal.pthread_sigmask(signal.SIG_SETMASK, {2, 10, 15, 40}); os.execvp(sys.argv[1], sys.argv[1:])"},
			orEnv(pre)...), "grep", "SigBlk", "/proc/self/status")...)
	})
}

// orEnv stands in for the bare command where a line needs some prefix.
func orEnv(pre []string) []string {
	if pre == nil {
		return []string{"env"}
	}
	return pre
}
