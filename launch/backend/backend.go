// Package backend holds what is known of each vendor: one TOML file per vendor,
// embedded in the binary, changed or extended by files of the user.
package backend

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"github.com/flagos-ai/zlexec/env"
	"github.com/flagos-ai/zlexec/sample"
)

//go:embed *.toml markers/*.toml
var embedded embed.FS

// Backend is one device runtime: the head of its file. Its tools and markers are
// read when they are needed (Tools, Rules): a run without readings needs no
// tools, and a command that prints nothing needs no markers.
type Backend struct {
	// Name, and the other names by which --backend finds it.
	Name    string   `toml:"name"`
	Aliases []string `toml:"aliases"`
	// Title is a few words for --list-backends.
	Title string `toml:"title"`
	// Vendor is the value of GEMS_VENDOR; empty: the variable is cleared and not set.
	Vendor string `toml:"vendor"`
	// TorchNamespace is the module under torch that serves the devices.
	TorchNamespace string `toml:"torch_namespace"`
	// Capabilities become ZL_CAPABILITIES.
	Capabilities []string `toml:"capabilities"`
	// Nodes are device nodes (glob patterns), PCI the vendor ids, for "auto".
	Nodes []string `toml:"nodes"`
	PCI   []string `toml:"pci"`
	// PytestPlugins are put first in PYTEST_PLUGINS.
	PytestPlugins []string `toml:"pytest_plugins"`
	// CaptureDeny lists operators that must not run inside a graph capture.
	CaptureDeny []string `toml:"capture_deny"`
	// Keep names cleared variables that this backend needs as they are.
	Keep []string `toml:"keep"`

	Set        []env.Setting  `toml:"set"`
	Visibility []env.Variable `toml:"visibility"`

	files []file // the embedded file, then the user's
}

// Tools is how a vendor's devices are listed and read, each tried in order.
type Tools struct {
	List      []List        `toml:"list"`
	Telemetry []sample.Tool `toml:"telemetry"`
}

// file is one backend file, cut where its tools and its markers begin: they are
// the bulk of it, and come in this order.
type file struct {
	name                 string
	head, tools, markers []byte
}

// Files is the embedded files with the user's (--backend-file) over them.
type Files struct{ user []file }

// Open reads the user's files. Each names a backend: a new one, or one whose
// keys it changes. They are decoded whole, so that their errors are known at once.
func Open(paths []string) (*Files, error) {
	f := &Files{}
	for _, p := range paths {
		data, err := os.ReadFile(p)
		if err != nil {
			return nil, fmt.Errorf("--backend-file %w", err)
		}
		u := cut(p, data)
		head, err := decodeHead(u)
		if err == nil && head.Name == "" {
			err = fmt.Errorf("%s: no name: the file must name its backend", p)
		}
		if err == nil {
			err = u.strict(u.tools, &Tools{})
		}
		if err == nil {
			_, err = u.ownMarkers()
		}
		if err != nil {
			return nil, fmt.Errorf("--backend-file %w", err)
		}
		f.user = append(f.user, u)
	}
	return f, nil
}

func cut(name string, data []byte) file {
	f := file{name: name, head: data}
	for offset := 0; offset < len(data); {
		line, _, _ := bytes.Cut(data[offset:], []byte("\n"))
		switch t := bytes.TrimSpace(line); {
		case bytes.HasPrefix(t, []byte("[[list]]")), bytes.HasPrefix(t, []byte("[[telemetry]]")):
			if f.tools == nil {
				f.head, f.tools = data[:offset], data[offset:]
			}
		case bytes.HasPrefix(t, []byte("[[marker]]")), bytes.HasPrefix(t, []byte("[markers]")):
			before := len(data) - len(f.tools)
			if f.tools == nil {
				f.head = data[:offset]
			} else {
				f.tools = data[before:offset]
			}
			f.markers = data[offset:]
			return f
		}
		offset += len(line) + 1
	}
	return f
}

func decodeHead(f file) (Backend, error) {
	var b Backend
	return b, f.strict(f.head, &b)
}

// strict decodes a part of the file. The lines before it are put back as empty
// ones when something is wrong, so that the error names the right line.
func (f file) strict(part []byte, into any) error {
	if strict(f.name, part, into) == nil {
		return nil
	}
	whole := slices.Concat(f.head, f.tools, f.markers)
	before := bytes.Count(whole[:bytes.Index(whole, part)], []byte("\n"))
	return strict(f.name, append(bytes.Repeat([]byte("\n"), before), part...), into)
}

// strict decodes TOML; an unknown key or a wrong type is an error that names the
// file and the line.
func strict(name string, data []byte, into any) error {
	d := toml.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	err := d.Decode(into)
	if unknown, ok := errors.AsType[*toml.StrictMissingError](err); ok && len(unknown.Errors) > 0 {
		row, _ := unknown.Errors[0].Position()
		return fmt.Errorf("%s:%d: unknown key %s", name, row, strings.Join(unknown.Errors[0].Key(), "."))
	}
	if wrong, ok := errors.AsType[*toml.DecodeError](err); ok {
		row, _ := wrong.Position()
		return fmt.Errorf("%s:%d: %s", name, row, strings.TrimPrefix(wrong.Error(), "toml: "))
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// Names returns the names of all backends, sorted.
func (f *Files) Names() []string {
	var names []string
	entries, _ := fs.Glob(embedded, "*.toml") // a constant pattern cannot be wrong
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e, ".toml"))
	}
	for _, u := range f.user {
		if b, err := decodeHead(u); err == nil && !slices.Contains(names, b.Name) {
			names = append(names, b.Name)
		}
	}
	slices.Sort(names)
	return names
}

// Load returns the backend of that name or alias.
func (f *Files) Load(name string) (*Backend, error) {
	if b, err := f.load(name); b != nil || err != nil {
		return b, err
	}
	for _, n := range f.Names() {
		if !f.mentions(n, name) {
			continue
		}
		b, err := f.load(n)
		if err != nil {
			return nil, err
		}
		if slices.Contains(b.Aliases, name) {
			return b, nil
		}
	}
	return nil, f.unknown(name)
}

// mentions reports whether a backend's files can have the alias at all: decoding
// every file to look would cost more than all the rest of a start.
func (f *Files) mentions(backend, alias string) bool {
	quoted := []byte(`"` + alias + `"`)
	data, _ := embedded.ReadFile(backend + ".toml")
	return bytes.Contains(data, quoted) ||
		slices.ContainsFunc(f.user, func(u file) bool { return bytes.Contains(u.head, quoted) })
}

// load returns the backend whose own name it is, or nil.
func (f *Files) load(name string) (*Backend, error) {
	var b *Backend
	if data, err := embedded.ReadFile(name + ".toml"); err == nil {
		own := cut(name+".toml", data)
		head, err := decodeHead(own)
		if err != nil {
			return nil, err
		}
		b = &head
		b.files = []file{own}
	}
	for _, u := range f.user {
		over, err := decodeHead(u)
		if err != nil {
			return nil, err
		}
		if over.Name != name {
			continue
		}
		if b == nil {
			b = &Backend{}
		}
		if err := overlay(b, &over, u.name, u.head); err != nil {
			return nil, err
		}
		b.files = append(b.files, u)
		if err := b.check(u.name); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// overlay replaces those keys of a struct that the user's text has.
func overlay(base, over any, name string, text []byte) error {
	var present map[string]any
	if err := toml.Unmarshal(text, &present); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	from, to := reflect.ValueOf(over).Elem(), reflect.ValueOf(base).Elem()
	for i := range from.NumField() {
		if _, ok := present[from.Type().Field(i).Tag.Get("toml")]; ok {
			to.Field(i).Set(from.Field(i))
		}
	}
	return nil
}

// Tools returns how the backend's devices are listed and read.
func (b *Backend) Tools() (Tools, error) {
	var t Tools
	for _, f := range b.files {
		var over Tools
		if err := f.strict(f.tools, &over); err != nil {
			return t, err
		}
		if err := overlay(&t, &over, f.name, f.tools); err != nil {
			return t, err
		}
	}
	return t, nil
}

// check reports what is wrong with a backend that the user's file made or
// changed; the embedded ones are checked by a test.
func (b *Backend) check(where string) error {
	for _, v := range b.Visibility {
		if err := v.Check(); err != nil {
			return fmt.Errorf("%s: %w", where, err)
		}
	}
	return nil
}

// unknown says which backends there are, and which one the user may have meant.
func (f *Files) unknown(name string) error {
	names := f.Names()
	nearest, best := "", 4 // further off than three edits is no typing error
	for _, n := range names {
		words := []string{n}
		if b, err := f.load(n); err == nil {
			words = append(words, b.Aliases...)
		}
		for _, w := range words {
			if d := distance(strings.ToLower(name), w); d < best && d < len(w) {
				nearest, best = w, d
			}
		}
	}
	hint := ""
	if nearest != "" {
		hint = fmt.Sprintf(", did you mean %s?", nearest)
	}
	return fmt.Errorf("--backend %s: unknown%s known are %s, and auto", name, hint, strings.Join(names, ", "))
}

// distance is the number of single-letter edits between two words.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			next := min(row[j]+1, row[j+1]+1, diagonal+cost)
			diagonal, row[j+1] = row[j+1], next
		}
	}
	return row[len(b)]
}
