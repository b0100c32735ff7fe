package launch_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

func TestBytes(t *testing.T) {
	t.Parallel()
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	file := filepath.Join(t.TempDir(), "bytes")
	for _, text := range []string{string(all) + "\r\n\x1b[31mred\x1b[0m\r50%\r100%\n\n \t", "no newline", "\n", "", strings.Repeat("x", 4097), strings.Repeat("l\n", 50000)} {
		if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		same(t, func(pre []string) *exec.Cmd {
			return command(pre, "sh", "-c", "cat "+file+" >&2; cat "+file+"; exit 3")
		})
	}
}

func TestStdinIsNotReadAhead(t *testing.T) {
	t.Parallel()
	line := `printf '1\n2\n3\n4\n' | { "$@" sh -c 'read a; echo got $a'; read b; echo left $b; }`
	same(t, func(pre []string) *exec.Cmd {
		return command(nil, append([]string{"sh", "-c", line, "sh"}, orEnv(pre)...)...)
	})
}

// TestOrder: as ">log 2>&1" has it, also when only stderr is scanned.
func TestOrder(t *testing.T) {
	t.Parallel()
	line := `exec >>"$0" 2>&1; exec "$@" sh -c 'i=0; while [ $i -lt 200 ]; do echo out $i; echo err $i >&2; i=$((i+1)); done'`
	want := ""
	for i := range 200 {
		want += fmt.Sprintf("out %d\nerr %d\n", i, i)
	}
	for _, flags := range ways {
		log := filepath.Join(t.TempDir(), "log")
		finish(t, command(nil, append([]string{"sh", "-c", line, log}, prefix(t, flags...)...)...))
		if read(log) != want {
			t.Errorf("%q: the order is lost", flags)
		}
	}
}

// TestWholeLines: three commands write lines to one pipe, as ranks do.
func TestWholeLines(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	var ranks []*exec.Cmd
	for _, letter := range []string{"a", "b", "c"} {
		c := command(prefix(t), "sh", "-c", `i=0; while [ $i -lt 2000 ]; do echo "$0$0$0$0$0$0$0$0$i" >&2; i=$((i+1)); done`, strings.Repeat(letter, 20))
		c.Stderr = w
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		ranks = append(ranks, c)
	}
	w.Close()
	data, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range ranks {
		if err := c.Wait(); err != nil {
			t.Error(err)
		}
	}
	lines := strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
	torn := slices.IndexFunc(lines, func(l string) bool {
		digits := strings.TrimLeft(l, l[:1])
		return len(l)-len(digits) != 160 || strings.Trim(digits, "0123456789") != ""
	})
	if len(lines) != 6000 || torn >= 0 {
		t.Errorf("%d lines, torn: %d", len(lines), torn)
	}
}

// TestMuch: 100 MiB and one endless line arrive as they are, in bounded memory.
func TestMuch(t *testing.T) {
	t.Parallel()
	for _, unit := range []string{"an ordinary line of a log, step 0042 loss 0.1234\n", "q"} {
		for _, fd := range []string{"2", "1"} {
			c := self(prefix(t, "--scan", "both"), "flood", fd, "50", unit)
			out, err := c.StderrPipe()
			if fd == "1" {
				out, err = c.StdoutPipe()
			}
			if err != nil || c.Start() != nil {
				t.Fatal(err)
			}
			sum, want, n, peak := sha256.New(), sha256.New(), int64(0), ""
			buf := make([]byte, 1<<16)
			for {
				m, err := out.Read(buf)
				sum.Write(buf[:m])
				if n += int64(m); err != nil {
					break
				}
				if n>>22 != (n-int64(m))>>22 {
					_, rest, _ := strings.Cut(read(fmt.Sprintf("/proc/%d/status", c.Process.Pid)), "VmHWM:")
					peak, _, _ = strings.Cut(strings.TrimSpace(rest), " ")
				}
			}
			if err := c.Wait(); err != nil {
				t.Error(err)
			}
			block := bytes.Repeat([]byte(unit), (1<<20)/len(unit))
			for range 50 {
				want.Write(block)
			}
			if !bytes.Equal(sum.Sum(nil), want.Sum(nil)) {
				t.Errorf("descriptor %s: %d bytes, changed", fd, n)
			}
			// 32 MiB is the promise, whatever comes.
			if kib, err := strconv.Atoi(peak); err != nil || kib > 32<<10 {
				t.Errorf("descriptor %s: peak memory %q KiB", fd, peak)
			}
		}
	}
}

func TestPromptArrives(t *testing.T) {
	t.Parallel()
	for _, fd := range []string{"1", "2"} {
		c := command(prefix(t, "--scan", "both"), "sh", "-c", "printf 'Password: ' >&"+fd+"; read x; exit 4")
		in, _ := c.StdinPipe()
		out, _ := c.StderrPipe()
		if fd == "1" {
			out, _ = c.StdoutPipe()
		}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		got := make([]byte, 10)
		if _, err := io.ReadFull(out, got); err != nil || string(got) != "Password: " {
			t.Errorf("descriptor %s: %q, %v", fd, got, err)
		}
		in.Close()
		_ = c.Wait()
		if status(c) != "exit 4" {
			t.Error(status(c))
		}
	}
}

// TestReaderGoesAway: the command ends as it would bare, by SIGPIPE or its own will.
func TestReaderGoesAway(t *testing.T) {
	t.Parallel()
	for _, line := range []string{
		"exec yes >&2",
		"trap '' PIPE; yes >&2; exit 5",
		"yes >&2 | true; exit 6",
	} {
		for _, fd := range []int{2, 1} {
			line := strings.ReplaceAll(line, ">&2", fmt.Sprintf(">&%d", fd))
			var got []string
			for _, pre := range [][]string{nil, prefix(t), prefix(t, "--scan", "both")} {
				c := command(pre, "sh", "-c", line)
				r, w, err := os.Pipe()
				if err != nil {
					t.Fatal(err)
				}
				if c.Stderr = w; fd == 1 {
					c.Stdout, c.Stderr = w, nil
				}
				if err := c.Start(); err != nil {
					t.Fatal(err)
				}
				w.Close()
				_, _ = r.Read(make([]byte, 10))
				r.Close()
				_ = c.Wait()
				got = append(got, status(c))
			}
			if got[1] != got[0] || got[2] != got[0] {
				t.Errorf("%s: bare %s, under zlexec %s, scanning both %s", line, got[0], got[1], got[2])
			}
		}
	}
}

func TestDiskFull(t *testing.T) {
	t.Parallel()
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip(err)
	}
	defer full.Close()
	const text = "CUDA error: an illegal memory access was encountered"
	c := command(prefix(t), "sh", "-c", "for i in 1 2 3; do echo '"+text+"' >&2; done; exit 1")
	c.Stderr = full
	if got := finish(t, c); got.status != "exit 82" {
		t.Errorf("the class is lost with the bytes: %+v", got)
	}
	// A file size limit: what fits arrives, and the code is the command's.
	log := filepath.Join(t.TempDir(), "log")
	line := `ulimit -f 64; exec "$@" sh -c 'trap "" XFSZ; yes | head -c 500000 >&2; exit 5' 2>"$0"`
	if got := finish(t, command(nil, append([]string{"sh", "-c", line, log}, prefix(t)...)...)); got.status != "exit 5" || len(read(log)) != 64*512 {
		t.Errorf("ulimit -f: %+v, %d bytes", got, len(read(log)))
	}
}

// TestSlowReader: it holds the command back, and nothing is lost or piled up.
func TestSlowReader(t *testing.T) {
	t.Parallel()
	progress := filepath.Join(t.TempDir(), "progress")
	c := command(prefix(t), "sh", "-c", `i=0; while [ $i -lt 160 ]; do head -c 65536 /dev/zero >&2; i=$((i+1)); echo $i >"$0"; done`, progress)
	out, err := c.StderrPipe()
	if err != nil || c.Start() != nil {
		t.Fatal(err)
	}
	steady, last := 0, ""
	eventually(t, "a halt", func() bool {
		if now := read(progress); now == last && now != "" {
			steady++
		} else {
			steady, last = 0, now
		}
		return steady > 100
	})
	if n := strings.TrimSpace(last); len(n) > 2 {
		t.Errorf("%s blocks of 64 KiB went into a reader that does not read", n)
	}
	n, err := io.Copy(io.Discard, out)
	if err != nil || n != 160*65536 || c.Wait() != nil {
		t.Errorf("%d of %d bytes, %v", n, 160*65536, err)
	}
}

// TestRelease: what the command closes is closed for its peers, though zlexec lives on.
func TestRelease(t *testing.T) {
	t.Parallel()
	for _, flags := range [][]string{nil, {"--scan", "both"}} {
		for _, fd := range []int{0, 1, 2, 5} {
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			c := command(prefix(t, flags...), "sh", "-c", fmt.Sprintf("exec %d<&-; exec sleep 60", fd))
			switch ours := w; fd {
			case 0:
				c.Stdin = r
			case 1:
				c.Stdout = ours
			case 2:
				c.Stderr = ours
			case 5:
				c.ExtraFiles = []*os.File{nil, nil, ours}
			}
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			if fd == 0 {
				r.Close()
				eventually(t, "EPIPE on stdin", func() bool { _, err := w.Write([]byte("x")); return err != nil })
			} else {
				w.Close()
				if n, err := r.Read(make([]byte, 9)); n != 0 || err != io.EOF { // blocks until the end of the sleep if zlexec keeps it
					t.Errorf("descriptor %d: %d, %v", fd, n, err)
				}
			}
			if state(c.Process.Pid) == "" {
				t.Errorf("descriptor %d: the end came with the end of zlexec", fd)
			}
			_ = c.Process.Signal(unix.SIGTERM)
			_ = c.Wait()
		}
	}
}

func TestNonblockingFlagIsLeftAlone(t *testing.T) {
	t.Parallel()
	for _, flag := range []int{0, unix.O_NONBLOCK} {
		var p [2]int
		if err := unix.Pipe2(p[:], unix.O_CLOEXEC|flag); err != nil {
			t.Fatal(err)
		}
		c := command(prefix(t), "sh", "-c", "echo hello >&2")
		r, w := os.NewFile(uintptr(p[0]), "r"), os.NewFile(uintptr(p[1]), "w")
		c.Stderr = w
		if err := c.Run(); err != nil {
			t.Error(err)
		}
		got, _ := unix.FcntlInt(uintptr(p[1]), unix.F_GETFL, 0)
		if got&unix.O_NONBLOCK != flag {
			t.Errorf("O_NONBLOCK was %x, is %x", flag, got&unix.O_NONBLOCK)
		}
		r.Close()
		w.Close()
	}
}

// TestLeftBehind: a process that the command leaves holding stderr neither holds
// zlexec nor dies, and its late lines arrive.
func TestLeftBehind(t *testing.T) {
	t.Parallel()
	go1, done := filepath.Join(t.TempDir(), "go"), filepath.Join(t.TempDir(), "done")
	c := command(prefix(t), "sh", "-c", `(while [ ! -e "$0" ]; do sleep 0.05; done; echo late >&2; echo later >&2; echo lives >"$1") & exit 3`, go1, done)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	c.Stderr = w
	_ = c.Run()
	w.Close()
	if status(c) != "exit 3" {
		t.Error(status(c))
	}
	if err := os.WriteFile(go1, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(r)
	if err != nil || string(got) != "late\nlater\n" || read(done) != "lives\n" {
		t.Errorf("got %q, %v, done %q", got, err, read(done))
	}

	// One that floods: zlexec ends all the same, and the flood ends with its reader.
	c = command(prefix(t), "sh", "-c", "yes flood >&2 & echo $! ; exit 3")
	r, w, err = os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	var reading sync.WaitGroup
	reading.Go(func() { _, _ = io.Copy(io.Discard, r) })
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, w
	_ = c.Run()
	w.Close()
	if status(c) != "exit 3" {
		t.Error(status(c))
	}
	r.Close()
	pid := 0
	fmt.Sscan(out.String(), &pid)
	eventually(t, "the end of the flood", func() bool { return state(pid) == "" })
	reading.Wait()
}
