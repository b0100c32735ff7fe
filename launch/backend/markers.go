package backend

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/flagos-ai/zlexec/classify"
	"github.com/pelletier/go-toml/v2"
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

// Rules returns the markers of the backend file (which may be missing or have none
// of its own) and of the shared files it names, in order of preference, each
// checked. An error names the file and, for a fault of form, the line.
func Rules(fsys fs.FS, file string) ([]classify.Rule, error) {
	data, err := fs.ReadFile(fsys, file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read backend file: %w", err)
	}
	return FileRules(fsys, file, data)
}

// FileRules is Rules for a backend file that was read already, as --backend-file's;
// fsys holds the shared files.
func FileRules(fsys fs.FS, file string, data []byte) ([]classify.Rule, error) {
	own, err := decodeMarkers(file, data)
	if err != nil {
		return nil, err
	}
	from := own.Markers.From
	if from == nil {
		from = commonMarkers[:]
	}
	rules := own.Marker
	for _, topic := range from {
		name := path.Join(markersDir, topic+".toml")
		data, err := fs.ReadFile(fsys, name)
		if err != nil {
			return nil, fmt.Errorf("%s: markers from %q: %w", file, topic, err)
		}
		shared, err := decodeMarkers(name, data)
		if err != nil {
			return nil, err
		}
		rules = append(rules, shared.Marker...)
	}
	return rules, nil
}

// decodeMarkers reads the marker part of a file. What else a backend file holds is
// not looked at; an unknown key in the marker part is an error.
func decodeMarkers(file string, data []byte) (markerFile, error) {
	var m markerFile
	err := toml.NewDecoder(strings.NewReader(string(data))).DisallowUnknownFields().Decode(&m)
	var strict *toml.StrictMissingError
	if errors.As(err, &strict) {
		err = nil
		for _, e := range strict.Errors {
			if k := e.Key(); len(k) > 0 && (k[0] == "marker" || k[0] == "markers") {
				line, _ := e.Position()
				return m, fmt.Errorf("%s:%d: unknown key %q", file, line, strings.Join(k, "."))
			}
		}
	}
	var form *toml.DecodeError
	if errors.As(err, &form) {
		line, _ := form.Position()
		return m, fmt.Errorf("%s:%d: %w", file, line, err)
	}
	if err != nil {
		return m, fmt.Errorf("%s: %w", file, err)
	}
	for i := range m.Marker {
		if err := m.Marker[i].Check(); err != nil {
			return m, fmt.Errorf("%s: %w", file, err)
		}
	}
	return m, nil
}
