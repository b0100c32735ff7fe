package backend

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/flagos-ai/zlexec/classify"
)

// Auto returns the backend whose devices this machine has, under root.
func (f *Files) Auto(root string) (*Backend, error) {
	var heads []Head
	for _, n := range f.Names() {
		b, err := f.load(n)
		if err != nil {
			return nil, err
		}
		heads = append(heads, Head{Name: b.Name, Nodes: b.Nodes, PCI: b.PCI})
	}
	name, _, err := Auto(heads, root)
	if err != nil {
		return nil, err
	}
	return f.Load(name)
}

// Print lists the backends: a table, or JSON lines.
func (f *Files) Print(w io.Writer, asJSON bool) error {
	for _, n := range f.Names() {
		b, err := f.load(n)
		if err != nil {
			return err
		}
		var variables []string
		for _, v := range b.Visibility {
			if !v.ReadOnly && !v.Under {
				variables = append(variables, v.Name)
			}
		}
		if asJSON {
			err = json.NewEncoder(w).Encode(map[string]any{"name": b.Name, "title": b.Title, "aliases": b.Aliases, "vendor": b.Vendor,
				"visibility": variables, "capabilities": b.Capabilities})
		} else {
			_, err = fmt.Fprintf(w, "%-11s %-22s %-36s %s\n", b.Name, b.Title, strings.Join(b.Aliases, " "), strings.Join(variables, " "))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Rules returns the markers of the backend: its own, with those of the user's
// files over them, then the shared ones that it names.
func (b *Backend) Rules() ([]classify.Rule, error) {
	var own []classify.Rule
	from := commonMarkers[:]
	for _, f := range b.files {
		m, err := f.ownMarkers()
		if err != nil {
			return nil, err
		}
		if m.Markers.From != nil {
			from = m.Markers.From
		}
		own = slices.DeleteFunc(own, func(r classify.Rule) bool {
			return slices.ContainsFunc(m.Marker, func(o classify.Rule) bool { return o.ID == r.ID })
		})
		own = append(own, m.Marker...)
	}
	shared, err := sharedRules(from)
	return append(own, shared...), err
}

// AllRules returns the markers of all embedded backends, for a log of unknown origin.
func AllRules() ([]classify.Rule, error) {
	var rules []classify.Rule
	for _, n := range (&Files{}).Names() {
		data, err := embedded.ReadFile(n + ".toml")
		if err != nil {
			return nil, err
		}
		m, err := cut(n+".toml", data).ownMarkers()
		if err != nil {
			return nil, err
		}
		rules = append(rules, m.Marker...)
	}
	shared, err := sharedRules(commonMarkers[:])
	return append(rules, shared...), err
}

func sharedRules(topics []string) ([]classify.Rule, error) {
	var rules []classify.Rule
	for _, topic := range topics {
		name := path.Join(markersDir, topic+".toml")
		data, err := embedded.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("markers from %q: %w", topic, err)
		}
		m, err := decodeMarkers(name, data)
		if err != nil {
			return nil, err
		}
		rules = append(rules, m.Marker...)
	}
	return rules, nil
}

// ownMarkers decodes the marker part of the file. The lines before it are put
// back as empty ones, so that an error names the right line.
func (f file) ownMarkers() (markerFile, error) {
	before := bytes.Count(f.head, []byte("\n")) + bytes.Count(f.tools, []byte("\n"))
	return decodeMarkers(f.name, append(bytes.Repeat([]byte("\n"), before), f.markers...))
}
