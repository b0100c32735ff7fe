package sample

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/shirou/gopsutil/v3/load"
	"github.com/shirou/gopsutil/v3/mem"
)

// This is the one file that uses gopsutil: v3 is frozen. Only its readers of /proc
// are used (host.Info and Process.Children would start programs), and not its
// packages cpu and host: each start of any program that links them reads
// /proc/stat twice and starts the runtime's poller, 6 % of a start of zlexec.

// cpuTimes are processor ticks since boot.
type cpuTimes struct{ busy, total float64 }

// readHost reads load, memory and processor time; utilisation is over the time
// since the snapshot before, so that it costs no waiting.
func readHost(since *Snapshot) *Host {
	h := &Host{}
	if avg, err := load.Avg(); err == nil {
		h.Load1 = &avg.Load1
	}
	if vm, err := mem.VirtualMemory(); err == nil && vm.Available > 0 {
		mib := vm.Available >> 20
		h.MemAvailableMiB = &mib
	}
	h.times = readTimes("/proc/stat")
	if since != nil && since.Host != nil && since.Host.times != nil && h.times != nil {
		busy, total := h.times.busy-since.Host.times.busy, h.times.total-since.Host.times.total
		if total > 0 {
			pct := min(100, max(0, 100*busy/total))
			h.CPUUtilPct = &pct
		}
	}
	return h
}

// readTimes reads the first line of /proc/stat (proc(5)): user, nice, system, idle,
// iowait, irq, softirq, steal; what follows is guest time, a part of user's.
func readTimes(path string) *cpuTimes {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	line, _, _ := bytes.Cut(data, []byte("\n"))
	fields := strings.Fields(string(line))
	if len(fields) < 9 || fields[0] != "cpu" {
		return nil
	}
	var t cpuTimes
	for i, f := range fields[1:9] {
		ticks, err := strconv.ParseFloat(f, 64)
		if err != nil {
			return nil
		}
		if t.total += ticks; i != 3 && i != 4 { // idle and iowait
			t.busy += ticks
		}
	}
	return &t
}

// readCPU is the reading of the processor itself, for the backend without a tool.
func readCPU(root string, h *Host) Reading {
	index := "0"
	d := Reading{Index: &index, TempC: readTemp(root)}
	d.Name, d.SMClockMHz = cpuInfo(filepath.Join(root, "/proc/cpuinfo"))
	if h != nil {
		d.UtilPct = h.CPUUtilPct
	}
	return d
}

// readTemp reads the sensor of the whole processor: coretemp's package (Intel),
// k10temp's Tctl (AMD) or the kernel's cpu thermal zone (Arm), in degrees Celsius.
// The kernel tells thousandths (Documentation/hwmon/sysfs-interface).
func readTemp(root string) *float64 {
	for _, s := range []struct{ label, value, want string }{
		{"sys/class/hwmon/hwmon*/temp*_label", "_input", "Package id 0"},
		{"sys/class/hwmon/hwmon*/temp*_label", "_input", "Tctl"},
		{"sys/class/thermal/thermal_zone*/type", "temp", "cpu-thermal"},
		{"sys/class/thermal/thermal_zone*/type", "temp", "x86_pkg_temp"},
	} {
		labels, _ := filepath.Glob(filepath.Join("/", root, s.label))
		for _, l := range labels {
			if text, err := os.ReadFile(l); err != nil || strings.TrimSpace(string(text)) != s.want {
				continue
			}
			data, err := os.ReadFile(strings.TrimSuffix(strings.TrimSuffix(l, "_label"), "type") + s.value)
			if milli, err2 := strconv.ParseFloat(strings.TrimSpace(string(data)), 64); err == nil && err2 == nil {
				t := milli / 1000
				return &t
			}
		}
	}
	return nil
}

// cpuInfo reads the model and the mean current clock. cpu.Info would give the
// maximum clock, from cpufreq, in its place.
func cpuInfo(path string) (name *string, mhz *float64) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, nil
	}
	sum, n := 0.0, 0
	for line := range strings.Lines(string(data)) {
		key, value, ok := pair(line)
		if !ok {
			continue
		}
		switch key {
		case "model name":
			if name == nil {
				name = &value
			}
		case "cpu MHz":
			if v, ok := unit(megahertz).read(value); ok {
				sum += v
				n++
			}
		}
	}
	if n > 0 {
		mean := sum / float64(n)
		mhz = &mean
	}
	return name, mhz
}
