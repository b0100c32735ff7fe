package backend

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/flagos-ai/zlexec/sample"
)

// List is one way to list a vendor's devices: a [[list]] table.
type List = sample.Tool

// Device is what a listing tells of one device; empty is unknown.
type Device struct{ Index, UUID, Name, Arch string }

// Enumerate asks the vendor's own listing. Without a device it returns the reason;
// it never invents one. env is the tool's environment, timeout bounds all lists.
func Enumerate(lists []List, env []string, timeout time.Duration) ([]Device, string) {
	s := sample.Take(sample.Request{Tools: lists, Env: env, Timeout: timeout, NoHost: true})
	var devices []Device
	for _, d := range s.Devices {
		if d.Index == nil && d.UUID == nil {
			continue // nothing that a mask could name
		}
		devices = append(devices, Device{word(d.Index), word(d.UUID), word(d.Name), word(d.Arch)})
	}
	if len(devices) > 0 {
		return devices, ""
	}
	if s.Detail == nil {
		return nil, "the vendor's listing names no device"
	}
	return nil, *s.Detail
}

func word(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// torchProbe prints the number of devices and one line per device: name, then
// architecture where torch tells it. The namespace is its argument.
const torchProbe = `import sys, torch
ns = sys.argv[1]
m = getattr(torch, ns, None)
if m is None:
    __import__("torch_" + ns)
    m = getattr(torch, ns)
print(m.device_count())
for i in range(m.device_count()):
    p = m.get_device_properties(i)
    arch = getattr(p, "gcnArchName", "")
    if not arch and hasattr(p, "major") and hasattr(p, "minor"):
        arch = "%d.%d" % (p.major, p.minor)
    print(getattr(p, "name", ""), arch, sep="\t")
`

// ProbeTorch asks python's torch.<namespace> for its devices, in a process of its
// own (group) that is killed at the deadline: importing torch takes seconds, and a
// runtime may hang. The indices are relative to the mask in env.
func ProbeTorch(namespace string, env []string, timeout time.Duration) ([]Device, string) {
	if namespace == "" || namespace == "cpu" {
		return nil, "torch counts no devices for this backend"
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, "python3", "-c", torchProbe, namespace)
	cmd.Env = env
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second // for what python's children hold open
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	type answer struct {
		out []byte
		err error
	}
	done := make(chan answer, 1)
	// Not waited for when the process is stuck in the driver and survives SIGKILL.
	go func() {
		out, err := cmd.Output()
		done <- answer{out, err}
	}()
	select {
	case a := <-done:
		if a.err != nil {
			return nil, torchFailure(ctx, a.err, stderr.String(), timeout)
		}
		return torchDevices(string(a.out))
	case <-time.After(timeout + time.Second):
		return nil, fmt.Sprintf("python3 did not end within %s and cannot be killed", timeout)
	}
}

func torchFailure(ctx context.Context, err error, said string, timeout time.Duration) string {
	if ctx.Err() != nil {
		return fmt.Sprintf("python3 did not count torch's devices within %s", timeout)
	}
	if errors.Is(err, exec.ErrNotFound) {
		return "python3 is not on PATH"
	}
	lines := strings.Split(strings.TrimSpace(said), "\n")
	return "torch counted no devices: " + lines[len(lines)-1] // the exception itself comes last
}

// torchDevices reads the probe's answer.
func torchDevices(out string) ([]Device, string) {
	lines := strings.Split(strings.TrimSpace(out), "\n")
	n, err := strconv.Atoi(strings.TrimSpace(lines[0]))
	if err != nil || n != len(lines)-1 {
		return nil, fmt.Sprintf("torch's answer is not a count of devices: %q", lines[0])
	}
	if n == 0 {
		return nil, "torch counts no device"
	}
	var devices []Device
	for i, line := range lines[1:] {
		name, arch, _ := strings.Cut(line, "\t")
		devices = append(devices, Device{Index: strconv.Itoa(i), Name: strings.TrimSpace(name), Arch: strings.TrimSpace(arch)})
	}
	return devices, ""
}
