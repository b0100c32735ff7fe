package backend

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAuto(t *testing.T) {
	all := []Head{
		{"cuda", []string{"/dev/nvidia[0-9]*"}, []string{"0x10de"}},
		{"rocm", []string{"/dev/kfd"}, []string{"0x1002"}},
		{"hygon", []string{"/dev/kfd", "/dev/mkfd"}, []string{"0x1d94"}},
		{"xpu", nil, []string{"0x8086:0x0380"}},
		{"tpu", []string{"/dev/accel[0-9]*"}, nil},
		{"cpu", nil, nil},
	}
	for _, c := range []struct {
		name, files string // "path" or "path=text"
		want        string // the backend, or a part of the error
		fails       bool
	}{
		{"nothing", "dev/null", "no device node", true},
		{"a tool proves nothing", "usr/bin/nvidia-smi", "no device node", true},
		{"control nodes alone", "dev/nvidiactl dev/nvidia-uvm", "no device node", true},
		{"node", "dev/nvidia0 dev/nvidia1", "cuda", false},
		{"node, and another vendor's desktop chip", "dev/nvidia0 sys/bus/pci/devices/a/vendor=0x1002 sys/bus/pci/devices/a/class=0x030000", "cuda", false},
		{"shared node", "dev/kfd sys/bus/pci/devices/a/vendor=0x1d94 sys/bus/pci/devices/a/class=0x038000", "hygon", false},
		{"shared node without PCI", "dev/kfd", "rocm, hygon", true},
		{"two nodes", "dev/nvidia0 dev/accel0", "", true},
		{"PCI alone", "sys/bus/pci/devices/a/vendor=0x10de sys/bus/pci/devices/a/class=0x030200", "cuda", false},
		{"a network card", "sys/bus/pci/devices/a/vendor=0x10de sys/bus/pci/devices/a/class=0x020000", "no device node", true},
		{"a desktop's chip", "sys/bus/pci/devices/a/vendor=0x8086 sys/bus/pci/devices/a/class=0x030000", "no device node", true},
		{"a data centre's", "sys/bus/pci/devices/a/vendor=0x8086 sys/bus/pci/devices/a/class=0x038000", "xpu", false},
		{"two PCI vendors", "sys/bus/pci/devices/a/vendor=0x10de sys/bus/pci/devices/b/vendor=0x1002", "cuda, rocm", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			root := t.TempDir()
			for f := range strings.FieldsSeq(c.files) {
				path, text, _ := strings.Cut(f, "=")
				path = filepath.Join(root, path)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text+"\n"), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			name, why, err := Auto(all, root)
			switch {
			case (err != nil) != c.fails:
				t.Errorf("%q, %q, %v", name, why, err)
			case err != nil && !strings.Contains(err.Error(), c.want):
				t.Errorf("error %q, want %q in it", err, c.want)
			case err == nil && (name != c.want || why == ""):
				t.Errorf("%q because %q, want %q", name, why, c.want)
			}
		})
	}
}
