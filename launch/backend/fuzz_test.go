package backend

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/flagos-ai/zlexec/sample"
)

// FuzzBackendFiles gives any bytes to every tool of every backend file: no panic, an
// error or a device, and only finite values.
func FuzzBackendFiles(f *testing.F) {
	var all []sample.Tool
	files, _ := filepath.Glob("*.toml")
	for _, file := range files {
		t := readTools(f, strings.TrimSuffix(file, ".toml"))
		for _, tool := range append(t.Telemetry, t.List...) {
			all = append(append(all, tool), tool.Extra...)
		}
	}
	saved, _ := filepath.Glob("testdata/*/*.txt")
	for _, file := range saved {
		if data, err := os.ReadFile(file); err == nil && len(data) < 4000 {
			f.Add(data)
		}
	}
	f.Fuzz(func(t *testing.T, out []byte) {
		for _, tool := range all {
			readings, err := sample.ParseOutput(tool, out)
			if err == nil && len(readings) == 0 {
				t.Fatalf("%v: no device and no error", tool.Argv)
			}
			for _, d := range readings {
				for _, v := range []*float64{d.SMClockMHz, d.MemClockMHz, d.TempC, d.PowerW, d.UtilPct} {
					if v != nil && (math.IsNaN(*v) || math.IsInf(*v, 0)) {
						t.Fatalf("%v: value %v", tool.Argv, *v)
					}
				}
			}
		}
	})
}
