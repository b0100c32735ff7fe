package backend

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/flagos-ai/zlexec/sample"
)

func TestEnumerateNothing(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	list := []List{{Argv: []string{"no-such-smi"}, Formats: []string{"csv"}}}
	if devices, why := Enumerate(list, nil, time.Minute); len(devices) > 0 || !strings.Contains(why, "no-such-smi") {
		t.Errorf("%v, %q", devices, why)
	}
	if devices, why := Enumerate(nil, nil, time.Minute); len(devices) > 0 || why == "" {
		t.Errorf("%v, %q", devices, why)
	}
}

// fakePython puts a python3 on PATH that prints or does what script says.
func fakePython(t *testing.T, script string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "python3"), []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":/usr/bin:/bin")
}

func TestProbeTorch(t *testing.T) {
	for _, c := range []struct {
		name, script string
		timeout      time.Duration
		devices      []Device
		why          string
	}{
		{"two", `printf '2\nNVIDIA H20\t9.0\nNVIDIA H20\t\n'`, time.Minute,
			[]Device{{Index: "0", Name: "NVIDIA H20", Arch: "9.0"}, {Index: "1", Name: "NVIDIA H20"}}, ""},
		{"none", `echo 0`, time.Minute, nil, "torch counts no device"},
		{"no torch", `echo "Traceback" >&2; echo "ModuleNotFoundError: No module named 'torch'" >&2; exit 1`, time.Minute, nil, "No module named 'torch'"},
		{"noise", `echo hello`, time.Minute, nil, "not a count"},
		{"count without devices", `echo 3`, time.Minute, nil, "not a count"},
		{"hangs", `sleep 1000 & wait`, 300 * time.Millisecond, nil, "within 300ms"},
	} {
		t.Run(c.name, func(t *testing.T) {
			fakePython(t, c.script)
			devices, why := ProbeTorch("cuda", nil, c.timeout)
			if len(devices) != len(c.devices) || !strings.Contains(why, c.why) {
				t.Fatalf("%v, %q; want %v, %q", devices, why, c.devices, c.why)
			}
			for i := range devices {
				if devices[i] != c.devices[i] {
					t.Errorf("%v, want %v", devices[i], c.devices[i])
				}
			}
		})
	}
	if _, why := ProbeTorch("", nil, time.Minute); why == "" {
		t.Error("torch was asked about a backend that it does not serve")
	}
}

// TestProbeScript runs the probe itself, with a stand-in for torch.
func TestProbeScript(t *testing.T) {
	python := "/usr/bin/python3"
	if _, err := os.Stat(python); err != nil {
		t.Skipf("no %s", python)
	}
	dir := t.TempDir()
	torch := "class P:\n    name = 'X1'\n    major = 3\n    minor = 1\nclass cuda:\n    device_count = staticmethod(lambda: 1)\n    get_device_properties = staticmethod(lambda i: P)\n"
	if err := os.WriteFile(filepath.Join(dir, "torch.py"), []byte(torch), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(python, filepath.Join(dir, "python3")); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":/usr/bin:/bin")
	devices, why := ProbeTorch("cuda", append(os.Environ(), "PYTHONPATH="+dir), time.Minute)
	if len(devices) != 1 || devices[0] != (Device{Index: "0", Name: "X1", Arch: "3.1"}) {
		t.Errorf("%v, %q", devices, why)
	}
	if devices, why := ProbeTorch("musa", append(os.Environ(), "PYTHONPATH="+dir), time.Minute); len(devices) > 0 || !strings.Contains(why, "torch_musa") {
		t.Errorf("a namespace that torch lacks: %v, %q", devices, why)
	}
}

// TestTimedOutListing: a hanging tool costs its time and gives a reason.
func TestTimedOutListing(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "x-smi"), []byte("#!/bin/sh\nsleep 1000\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":/usr/bin:/bin")
	devices, why := Enumerate([]List{sample.Tool{Argv: []string{"x-smi"}, Formats: []string{"csv"}}}, nil, 300*time.Millisecond)
	if len(devices) > 0 || !strings.Contains(why, "did not end") {
		t.Errorf("%v, %q", devices, why)
	}
}
