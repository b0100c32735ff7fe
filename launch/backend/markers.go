package backend

import (
	"bytes"
	"fmt"
	"io/fs"
	"path"
	"slices"

	"github.com/flagos-ai/zlexec/classify"
)

// markerFile is what concerns markers in a backend file: its own [[marker]] tables
// and, in [markers], the shared files it adds to them.
type markerFile struct {
	Markers struct {
		From []string `toml:"from"`
	} `toml:"markers"`
	Marker []classify.Rule `toml:"marker"`
}

// commonMarkers are the shared files for a backend that names none: most runtimes
// answer with CUDA's texts, and PyTorch speaks for all.
var commonMarkers = [...]string{"cuda-strings", "torch", "frameworks", "boilerplate"}

// markersDir holds the shared files, markers/<topic>.toml.
const markersDir = "markers"

// Rules returns the markers of the backend: its own, with those of the user's
// files over them, then the shared ones that it names. An error names the file
// and, for a fault of form, the line.
func (b *Backend) Rules() ([]classify.Rule, error) { return b.rules(embedded) }

// rules is Rules with the shared files of fsys.
func (b *Backend) rules(fsys fs.FS) ([]classify.Rule, error) {
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
	for _, topic := range from {
		name := path.Join(markersDir, topic+".toml")
		data, err := fs.ReadFile(fsys, name)
		if err != nil {
			return nil, fmt.Errorf("markers from %q: %w", topic, err)
		}
		shared, err := decodeMarkers(name, data)
		if err != nil {
			return nil, err
		}
		own = append(own, shared.Marker...)
	}
	return own, nil
}

// ownMarkers decodes the marker part of the file. The lines before it are put
// back as empty ones, so that an error names the right line.
func (f file) ownMarkers() (markerFile, error) {
	before := bytes.Count(f.head, []byte("\n")) + bytes.Count(f.tools, []byte("\n"))
	return decodeMarkers(f.name, append(bytes.Repeat([]byte("\n"), before), f.markers...))
}

// AllRules returns the markers of every embedded backend and every shared file,
// for a log of which nobody says where it comes from.
func AllRules() ([]classify.Rule, error) {
	var rules []classify.Rule
	for _, pattern := range []string{"*.toml", markersDir + "/*.toml"} {
		names, err := fs.Glob(embedded, pattern)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			data, err := embedded.ReadFile(name)
			if err != nil {
				return nil, err
			}
			m, err := cut(name, data).ownMarkers()
			if err != nil {
				return nil, err
			}
			rules = append(rules, m.Marker...)
		}
	}
	return rules, nil
}

// decodeMarkers reads the marker part of a file; an unknown key is an error.
func decodeMarkers(name string, data []byte) (markerFile, error) {
	var m markerFile
	err := strict(name, data, &m)
	if err != nil {
		return m, err
	}
	for i := range m.Marker {
		if err := m.Marker[i].Check(); err != nil {
			return m, fmt.Errorf("%s: %w", name, err)
		}
	}
	return m, nil
}
