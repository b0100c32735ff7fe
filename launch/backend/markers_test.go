package backend

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/flagos-ai/zlexec/classify"
)

// logText returns about size bytes of what training and test runs print: nothing
// that matches but, if every is positive, one line in so many.
func logText(size, every int) []byte {
	kinds := []string{
		"INFO 03-02 10:%02d:%02d [metrics.py:486] Avg prompt throughput: %d.1 tokens/s, Running: 4 reqs, Pending: 0 reqs, cache usage: 3.1%%\n",
		"[2026-03-02 10:%02d:%02d] step %d/20000 | loss 2.0173 | grad_norm 0.82 | lr 2.9e-05 | tokens/s 41233 | mem 61.2 GiB\n",
		"tests/test_pointwise.py::test_accuracy_add[dtype%d-shape%d-%d] PASSED\n",
		"W0302 10:%02d:%02d.123456 %d torch/utils/cpp_extension.py:118] operator dispatch took longer than usual, falling back to the default path\n",
		"torch.float16         %d.0%d          0.0112               1.3      [torch.Size([%d, 1024])]\n",
		"  File \"/opt/env/lib/site-packages/pkg/module_%d.py\", line %d, in forward_%d\n",
		"loading checkpoint shard %d of %d from /data/models/weights-%d.safetensors, memory mapped\n",
		"autotuning kernel add_kernel: BLOCK_SIZE %d, num_warps %d, num_stages %d: best config kept\n",
	}
	var b bytes.Buffer
	for n := 1; b.Len() < size; n++ {
		if every > 0 && n%every == 0 {
			b.WriteString("RuntimeError: CUDA error: invalid argument\n")
			continue
		}
		fmt.Fprintf(&b, kinds[n*7%len(kinds)], n%60, n*13%60, n)
	}
	return b.Bytes()
}

func scan(rules []classify.Rule, data []byte, portion int) classify.Result {
	s := classify.New(classify.Config{Rules: func() ([]classify.Rule, error) { return rules, nil }, Vendors: Vendors})
	w := s.Stream("stderr")
	for len(data) > 0 {
		n := min(portion, len(data))
		w.Write(data[:n])
		data = data[n:]
	}
	return s.Result()
}

func BenchmarkScan(b *testing.B) {
	for _, backend := range []string{"cuda", "ascend"} {
		rules, err := rulesOf(backend)
		if err != nil {
			b.Fatal(err)
		}
		for _, every := range []int{0, 10000, 100} {
			data := logText(8<<20, every)
			for _, portion := range []int{32 << 10, 100} {
				b.Run(fmt.Sprintf("%s/1in%d/writes%d", backend, every, portion), func(b *testing.B) {
					b.SetBytes(int64(len(data)))
					b.ReportAllocs()
					for b.Loop() {
						scan(rules, data, portion)
					}
				})
			}
		}
	}
}

// BenchmarkColour and BenchmarkPytest scan what costs more: escapes on every line,
// and node ids.
func BenchmarkColour(b *testing.B) {
	benchmarkConfig(b, config("cuda"), bytes.ReplaceAll(logText(8<<20, 10000), []byte("\n"), []byte("\x1b[0m\n\x1b[32m")))
}

// BenchmarkWide scans UTF-16, half of it NULs.
func BenchmarkWide(b *testing.B) {
	benchmarkConfig(b, config("cuda"), bytes.Join(bytes.Split(logText(4<<20, 10000), nil), []byte{0}))
}

func BenchmarkPytest(b *testing.B) {
	c := config("cuda")
	c.Pytest = true
	benchmarkConfig(b, c, logText(8<<20, 10000))
}

func benchmarkConfig(b *testing.B, c classify.Config, data []byte) {
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if _, err := classify.ClassifyReader(c, bytes.NewReader(data)); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkLoad is what a run with any output pays once: the first reads the files,
// the second makes the rules ready.
func BenchmarkLoad(b *testing.B) {
	b.Run("files", func(b *testing.B) {
		for b.Loop() {
			if _, err := rulesOf("cuda"); err != nil {
				b.Fatal(err)
			}
		}
	})
	rules, err := rulesOf("cuda")
	if err != nil {
		b.Fatal(err)
	}
	b.Run("gates", func(b *testing.B) {
		for b.Loop() {
			scan(rules, []byte("x\n"), 10)
		}
	})
}

// rulesOf returns the rules of a backend; one without a file has the common ones.
func rulesOf(name string) ([]classify.Rule, error) {
	b, err := (&Files{}).Load(name)
	if err != nil {
		b = &Backend{}
	}
	return b.Rules()
}

// config returns what classifies output under the backend of this name.
func config(backend string) classify.Config {
	return classify.Config{Rules: func() ([]classify.Rule, error) { return rulesOf(backend) }}
}

// TestWordings reads testdata/markers/<backend>/<class>.txt, every line of which is
// a log of its own and has that class.
func TestWordings(t *testing.T) { wordings(t, config) }

func wordings(t *testing.T, config func(backend string) classify.Config) {
	t.Helper()
	files, err := filepath.Glob("testdata/markers/*/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no wordings", err)
	}
	for _, file := range files {
		want, err := classify.ParseClass(strings.TrimSuffix(filepath.Base(file), ".txt"))
		if err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for n, line := range strings.Split(strings.TrimSpace(string(data)), "\n") {
			got, err := classify.ClassifyReader(config(filepath.Base(filepath.Dir(file))), strings.NewReader(line))
			if err != nil {
				t.Fatal(err)
			}
			if got.Class != want {
				by := ""
				if got.Root != nil {
					by = got.Root.Marker
				}
				t.Errorf("%s:%d: called %v by %q: %s", file, n+1, got.Class, by, line)
			}
		}
	}
}

// TestExamples holds every marker against the lines beside it.
func TestExamples(t *testing.T) {
	files, err := filepath.Glob("*.toml")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		rules, err := rulesOf(strings.TrimSuffix(file, ".toml"))
		if err != nil {
			t.Fatal(err)
		}
		c := config(strings.TrimSuffix(file, ".toml"))
		for _, r := range rules {
			if len(r.Example) == 0 {
				t.Errorf("%s: %s has no example", file, r.ID)
			}
			for _, line := range r.Example {
				got, err := classify.ClassifyReader(c, strings.NewReader(line+"\n"))
				if err != nil {
					t.Fatal(err)
				}
				if got.Class != r.Class || got.Root != nil && got.Root.Marker != r.ID {
					t.Errorf("%s: %s: example is %v by %v: %s", file, r.ID, got.Class, got.Root, line)
				}
			}
			for _, line := range r.Clean {
				got, err := classify.ClassifyReader(c, strings.NewReader(line+"\n"))
				if err != nil {
					t.Fatal(err)
				}
				if got.Root != nil && got.Root.Marker == r.ID {
					t.Errorf("%s: %s matches what it must not: %s", file, r.ID, line)
				}
			}
		}
	}
}

// TestAllRules holds the wordings against every backend's rules at once: another
// backend's marker must not change a class.
func TestAllRules(t *testing.T) {
	rules, err := AllRules()
	if err != nil {
		t.Fatal(err)
	}
	wordings(t, func(string) classify.Config {
		return classify.Config{Rules: func() ([]classify.Rule, error) { return rules, nil }}
	})
}

func TestRulesErrors(t *testing.T) {
	fsys := fstest.MapFS{
		"markers/a.toml": {Data: []byte("[[marker]]\nid = \"a\"\nclass = \"fatal\"\ntext = [\"some text\"]\nsource = \"x\"\n")},
		"markers/b.toml": {Data: []byte("[[marker]]\nid = \"b\"\nclass = \"fatal\"\nsource = \"x\"\n")},
	}
	for name, c := range map[string]struct{ data, want string }{
		"unknown key":      {"name = \"x\"\n[[marker]]\nid = \"a\"\ntexts = []\n", "f.toml:4: unknown key marker.texts"},
		"unknown topic":    {"[markers]\nfrom = [\"zzz\"]\n", "markers from \"zzz\""},
		"topic with fault": {"[markers]\nfrom = [\"b\"]\n", "markers/b.toml: marker \"b\": no text"},
		"bad class":        {"[[marker]]\nid = \"a\"\nclass = \"deadly\"\n", "f.toml:3"},
		"no source":        {"[[marker]]\nid = \"a\"\nclass = \"fatal\"\ntext = [\"abc\"]\n", "no source"},
		"bad expression":   {"[[marker]]\nid = \"a\"\nclass = \"fatal\"\ntext = [\"abc\"]\nmatch = \"(\"\nsource = \"x\"\n", "match"},
		"not TOML":         {"[[marker]]\nid = [\n", "f.toml:"},
	} {
		_, err := (&Backend{files: []file{cut("f.toml", []byte(c.data))}}).rules(fsys)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q in it", name, err, c.want)
		}
	}
	rules, err := (&Backend{files: []file{cut("f.toml", []byte("name = \"x\"\n[markers]\nfrom = [\"a\"]\n"))}}).rules(fsys)
	if err != nil || len(rules) != 1 || rules[0].ID != "a" {
		t.Errorf("got %v, %v", rules, err)
	}
	if rules, err := rulesOf("no-such-backend"); err != nil || len(rules) == 0 {
		t.Errorf("a backend without a file gets the common markers: %d, %v", len(rules), err)
	}
}
