// Package backend holds what is known of each vendor: one TOML file per vendor,
// embedded in the binary, changed or extended by files of the user.
package backend

import (
	"bytes"
	"embed"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

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
