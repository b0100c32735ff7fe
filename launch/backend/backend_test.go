package backend

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/flagos-ai/zlexec/env"
)

// TestEmbedded walks every file: what it says must be complete, unique and known
// to the environment's list.
func TestEmbedded(t *testing.T) {
	files := &Files{}
	cleared := env.ClearedNames()
	taken := map[string]string{}
	var vendors []string
	for _, name := range files.Names() {
		b, err := files.Load(name)
		if err != nil {
			t.Error(err)
			continue
		}
		if b.Name != name || b.Title == "" {
			t.Errorf("%s.toml: name %q, title %q", name, b.Name, b.Title)
		}
		for _, word := range append([]string{b.Name}, b.Aliases...) {
			if other, ok := taken[word]; ok {
				t.Errorf("%s is a name of %s and of %s", word, other, name)
			}
			taken[word] = name
			if got, err := files.Load(word); err != nil || got.Name != name {
				t.Errorf("Load(%q) = %v, %v", word, got, err)
			}
		}
		if err := b.check(name); err != nil {
			t.Error(err)
		}
		for _, v := range b.Visibility {
			if !slices.Contains(cleared, v.Name) {
				t.Errorf("%s: %s is not in env's list, so it would leak onto other backends", name, v.Name)
			}
		}
		for _, n := range b.Keep {
			if !slices.Contains(cleared, n) {
				t.Errorf("%s keeps %s, which nothing clears", name, n)
			}
		}
		if _, err := b.Tools(); err != nil {
			t.Error(err)
		}
		if _, err := b.Rules(); err != nil {
			t.Error(err)
		}
		if b.Vendor != "" {
			vendors = append(vendors, b.Vendor)
		}
	}
	if got := Vendors(); !slices.Equal(got, vendors) {
		t.Errorf("Vendors() = %v, the files say %v", got, vendors)
	}
	// FlagGems' own enumeration (runtime/common.py at ed2508bcb).
	want := strings.Fields("aipu amd arm ascend cambricon enflame hygon iluvatar kunlunxin metax mthreads nvidia spacemit sunrise thead tsingmicro")
	slices.Sort(vendors)
	if !slices.Equal(vendors, want) {
		t.Errorf("vendors %v, FlagGems accepts %v", vendors, want)
	}
}

func TestUserFiles(t *testing.T) {
	write := func(text string) string {
		p := filepath.Join(t.TempDir(), "b.toml")
		if err := os.WriteFile(p, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		return p
	}
	t.Run("a new backend", func(t *testing.T) {
		f, err := Open([]string{write("name = \"newchip\"\naliases = [\"nc\"]\n[[visibility]]\nname = \"NC_DEVICES\"\nforms = [\"index\"]\n")})
		if err != nil {
			t.Fatal(err)
		}
		b, err := f.Load("nc")
		if err != nil || b.Visibility[0].Name != "NC_DEVICES" {
			t.Fatalf("%+v, %v", b, err)
		}
		if rules, err := b.Rules(); err != nil || len(rules) == 0 {
			t.Errorf("a backend without markers gets the shared ones: %d, %v", len(rules), err)
		}
	})
	t.Run("one key of a known one", func(t *testing.T) {
		f, err := Open([]string{write("name = \"metax\"\ncapabilities = [\"cuda_graph\"]\n[[marker]]\nid = \"metax.mine\"\nclass = \"fatal\"\ntext = [\"my own text\"]\nsource = \"here\"\n")})
		if err != nil {
			t.Fatal(err)
		}
		own, err := f.Load("metax")
		if err != nil {
			t.Fatal(err)
		}
		base, err := (&Files{}).Load("metax")
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(own.Capabilities, []string{"cuda_graph"}) || own.Vendor != base.Vendor || len(own.Visibility) != len(base.Visibility) {
			t.Errorf("got %+v", own)
		}
		before, _ := base.Rules()
		after, err := own.Rules()
		if err != nil || len(after) != len(before)+1 {
			t.Errorf("%d markers, had %d: %v", len(after), len(before), err)
		}
		tools, err := own.Tools()
		if err != nil || len(tools.Telemetry) == 0 {
			t.Errorf("the tools of the known one are gone: %+v, %v", tools, err)
		}
	})
	for name, c := range map[string][2]string{
		"no name":        {"title = \"x\"\n", "no name"},
		"unknown key":    {"name = \"x\"\n\nbogus = 1\n", ":3: unknown key bogus"},
		"in a tool":      {"name = \"x\"\n[[telemetry]]\nargv = [\"t\"]\nbogus = 1\n", ":4: unknown key telemetry.bogus"},
		"in a marker":    {"name = \"x\"\n[[list]]\nargv = [\"t\"]\n[[marker]]\nbogus = 1\n", ":5: unknown key marker.bogus"},
		"wrong type":     {"name = \"x\"\n[[visibility]]\nname = 3\n", ":3: "},
		"no TOML at all": {"name = \"x\"\nthis is not TOML\n", ":2: "},
	} {
		if _, err := Open([]string{write(c[0])}); err == nil || !strings.Contains(err.Error(), c[1]) {
			t.Errorf("%s: got %v, want %q", name, err, c[1])
		}
	}
	f, err := Open([]string{write("name = \"x\"\n[[visibility]]\nname = \"X\"\nforms = [\"(\"]\n")})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Load("x"); err == nil || !strings.Contains(err.Error(), "form \"(\"") {
		t.Errorf("a bad form: %v", err)
	}
}

func TestUnknownNamesTheNearest(t *testing.T) {
	_, err := (&Files{}).Load("acsend")
	if err == nil || !strings.Contains(err.Error(), "did you mean ascend?") {
		t.Errorf("got %v", err)
	}
	_, err = (&Files{}).Load("zzzzzzzz")
	if err == nil || strings.Contains(err.Error(), "did you mean") || !strings.Contains(err.Error(), "cuda") {
		t.Errorf("got %v", err)
	}
}
