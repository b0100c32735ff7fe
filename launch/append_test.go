package launch

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestAppendLineByManyProcesses: 64 processes that write long lines to one file
// at once lose and tear none.
func TestAppendLineByManyProcesses(t *testing.T) {
	const lines = 200
	line := func(writer, n int) []byte {
		return fmt.Appendf(nil, `{"writer":%d,"n":%d,"pad":%q}`, writer, n, strings.Repeat("x", 3000+writer))
	}
	if file := os.Getenv("ZLEXEC_TEST_APPEND"); file != "" {
		var writer int
		if _, err := fmt.Sscan(os.Getenv("ZLEXEC_TEST_WRITER"), &writer); err != nil {
			t.Fatal(err)
		}
		for n := range lines {
			if err := AppendLine(file, line(writer, n)); err != nil {
				t.Fatal(err)
			}
		}
		return
	}
	file := filepath.Join(t.TempDir(), "runs.jsonl")
	var writers []*exec.Cmd
	for w := range 64 {
		c := exec.Command(os.Args[0], "-test.run=^TestAppendLineByManyProcesses$")
		c.Env = append(os.Environ(), "ZLEXEC_TEST_APPEND="+file, fmt.Sprintf("ZLEXEC_TEST_WRITER=%d", w))
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		writers = append(writers, c)
	}
	for _, c := range writers {
		if err := c.Wait(); err != nil {
			t.Error(err)
		}
	}
	data, err := os.ReadFile(file)
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
	if len(seen) != 64*lines || bytes.Count(data, []byte("\n")) != 64*lines {
		t.Errorf("%d different lines of %d, want %d", len(seen), bytes.Count(data, []byte("\n")), 64*lines)
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
