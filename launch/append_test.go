package launch

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// TestAppendLineByManyProcesses: 64 processes that write long lines to one file
// at once lose and tear none.
func TestAppendLineByManyProcesses(t *testing.T) {
	if isWriter() {
		return
	}
	file := filepath.Join(t.TempDir(), "runs.jsonl")
	appendFrom(t, 64, 200, file)
}

// TestAppendLineOverNetwork is the same on a file system as two hosts share one: a
// client of it asks for the file's end, and then writes there.
func TestAppendLineOverNetwork(t *testing.T) {
	backing := t.TempDir()
	for _, name := range []string{"plain", "runs.jsonl"} {
		if err := os.WriteFile(filepath.Join(backing, name), nil, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	one, two := mount(t, backing), mount(t, backing)
	const lines = 2000
	var wg sync.WaitGroup
	for _, host := range []string{one, two} {
		f, err := os.OpenFile(filepath.Join(host, "plain"), os.O_WRONLY|os.O_APPEND, 0)
		if err != nil {
			t.Fatal(err)
		}
		wg.Go(func() {
			for range lines {
				_, _ = f.WriteString("line\n")
			}
			_ = f.Close()
		})
	}
	wg.Wait()
	plain, err := os.ReadFile(filepath.Join(backing, "plain"))
	if err != nil {
		t.Fatal(err)
	}
	lost := 2*lines - bytes.Count(plain, []byte("\n"))
	if lost == 0 {
		t.Fatal("nothing is lost with O_APPEND alone: the test would show nothing")
	}
	t.Logf("O_APPEND alone loses %d lines of %d", lost, 2*lines)
	appendFrom(t, 24, 20, filepath.Join(one, "runs.jsonl"), filepath.Join(two, "runs.jsonl"))
}

// node opens files so that each write goes through the client, which knows its place.
type node struct{ fs.LoopbackNode }

func (n *node) Open(ctx context.Context, flags uint32) (fs.FileHandle, uint32, syscall.Errno) {
	h, open, errno := n.LoopbackNode.Open(ctx, flags)
	if f, ok := h.(*fs.LoopbackFile); ok {
		return through{f}, open, errno
	}
	return h, open, errno
}

type through struct{ *fs.LoopbackFile }

func (through) PassthroughFd() (int, bool) { return 0, false }

// mount shows a directory through a client of its own, with locks that all clients share.
func mount(t *testing.T, backing string) string {
	t.Helper()
	dir := t.TempDir()
	root := &fs.LoopbackRoot{Path: backing, NewNode: func(root *fs.LoopbackRoot, _ *fs.Inode, _ string, _ *syscall.Stat_t) fs.InodeEmbedder {
		return &node{fs.LoopbackNode{RootData: root}}
	}}
	root.RootNode = root.NewNode(root, nil, "", nil)
	server, err := fs.Mount(dir, root.RootNode, &fs.Options{MountOptions: fuse.MountOptions{EnableLocks: true, DirectMount: true}})
	if err != nil {
		t.Skip("a file system of one's own cannot be mounted here (needs root and /dev/fuse): ", err)
	}
	t.Cleanup(func() {
		if err := server.Unmount(); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// line is the n-th of a writer: longer than what a pipe takes in one piece.
func line(writer, n int) []byte {
	return fmt.Appendf(nil, `{"writer":%d,"n":%d,"pad":%q}`, writer, n, strings.Repeat("x", 5000+writer))
}

// isWriter does a writer's work if this process is one.
func isWriter() bool {
	var writer, lines int
	file := os.Getenv("ZLEXEC_TEST_APPEND")
	if _, err := fmt.Sscan(os.Getenv("ZLEXEC_TEST_WRITER"), &writer, &lines); file == "" || err != nil {
		return false
	}
	for n := range lines {
		if err := AppendLine(file, line(writer, n)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	return true
}

// appendFrom starts so many writers in turn on the names of one file, and looks at
// what is in it.
func appendFrom(t *testing.T, writers, lines int, names ...string) {
	t.Helper()
	var all []*exec.Cmd
	for w := range writers {
		c := exec.Command(os.Args[0], "-test.run=^TestAppendLineByManyProcesses$")
		c.Env = append(os.Environ(), "ZLEXEC_TEST_APPEND="+names[w%len(names)], fmt.Sprintf("ZLEXEC_TEST_WRITER=%d %d", w, lines))
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		all = append(all, c)
	}
	for _, c := range all {
		if err := c.Wait(); err != nil {
			t.Error(err)
		}
	}
	data, err := os.ReadFile(names[0])
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for l := range bytes.Lines(data) {
		var r struct{ Writer, N int }
		if err := json.Unmarshal(l, &r); err != nil || !bytes.Equal(bytes.TrimSpace(l), line(r.Writer, r.N)) {
			t.Fatalf("torn line: %q: %v", l, err)
		}
		seen[fmt.Sprint(r.Writer, r.N)]++
	}
	if want := writers * lines; len(seen) != want || bytes.Count(data, []byte("\n")) != want {
		t.Errorf("%d different lines of %d, want %d", len(seen), bytes.Count(data, []byte("\n")), want)
	}
}

func TestAppendLine(t *testing.T) {
	dir := t.TempDir()
	torn := filepath.Join(dir, "torn")
	if err := os.WriteFile(torn, []byte("{\"whole\":1}\n{\"half"), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := AppendLine(torn, []byte(`{"next":2}`)); err != nil {
		t.Fatal(err)
	}
	got, _ := os.ReadFile(torn)
	if want := "{\"whole\":1}\n{\"half\n{\"next\":2}\n"; string(got) != want {
		t.Errorf("after a torn line: %q, want %q", got, want)
	}
	if err := AppendLine("/dev/null", []byte("x")); err != nil {
		t.Errorf("/dev/null: %v", err)
	}
	if err := AppendLine("/dev/full", []byte("x")); err == nil || !strings.Contains(err.Error(), "no space") {
		t.Errorf("a full disk: %v", err)
	}
	if err := AppendLine(filepath.Join(dir, "no", "such"), []byte("x")); err == nil {
		t.Error("a missing folder must be an error")
	}
}

func TestExpandPath(t *testing.T) {
	rank, job := "5", "91"
	s := &Scheduler{Kind: "slurm", Rank: &rank, JobID: &job}
	for _, tt := range []struct {
		pattern string
		s       *Scheduler
		want    string
	}{
		{"runs.jsonl", nil, "runs.jsonl"},
		{"{job_id}/{step_id}.{rank}@{hostname}.{pid}", s, "91/none.5@h.42"},
		{"r.{rank}.jsonl", nil, "r.0.jsonl"},
		{"r.{rnak}.jsonl", s, "error: {rnak} is no placeholder"},
		{"r.{rank", s, "error: is no placeholder"},
	} {
		got, err := ExpandPath(tt.pattern, tt.s, "h", 42)
		if want, isErr := strings.CutPrefix(tt.want, "error: "); isErr {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %q, %v", tt.pattern, got, err)
			}
		} else if err != nil || got != tt.want {
			t.Errorf("%s: %q, %v; want %q", tt.pattern, got, err, tt.want)
		}
	}
}
