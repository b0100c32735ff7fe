package sample

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/shirou/gopsutil/v3/cpu"
	"github.com/shirou/gopsutil/v3/host"
	"github.com/shirou/gopsutil/v3/load"
	"github.com/shirou/gopsutil/v3/mem"
)

// This is the one file that uses gopsutil: v3 is frozen. Only its readers of /proc
// and /sys are used; host.Info and Process.Children would start programs.

// cpuTimes are processor seconds since boot.
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
	if all, err := cpu.Times(false); err == nil && len(all) == 1 {
		t := all[0] // guest time is part of user time
		total := t.User + t.Nice + t.System + t.Idle + t.Iowait + t.Irq + t.Softirq + t.Steal
		h.times = &cpuTimes{busy: total - t.Idle - t.Iowait, total: total}
	}
	if since != nil && since.Host != nil && since.Host.times != nil && h.times != nil {
		busy, total := h.times.busy-since.Host.times.busy, h.times.total-since.Host.times.total
		if total > 0 {
			pct := min(100, max(0, 100*busy/total))
			h.CPUUtilPct = &pct
		}
	}
	return h
}

// readCPU is the reading of the processor itself, for the backend without a tool.
func readCPU(root string, h *Host) Reading {
	index := "0"
	d := Reading{Index: &index}
	d.Name, d.SMClockMHz = cpuInfo(filepath.Join(root, "/proc/cpuinfo"))
	if h != nil {
		d.UtilPct = h.CPUUtilPct
	}
	if sensors, err := host.SensorsTemperatures(); err == nil || len(sensors) > 0 {
		d.TempC = packageTemp(sensors)
	}
	return d
}

// packageTemp is the sensor of the whole processor: coretemp's package (Intel),
// k10temp's Tctl (AMD) or the kernel's cpu thermal zone (Arm).
func packageTemp(sensors []host.TemperatureStat) *float64 {
	for _, want := range []string{"coretemp_package_id_0", "k10temp_tctl", "cpu_thermal", "x86_pkg_temp"} {
		for _, s := range sensors {
			if strings.HasPrefix(strings.ToLower(s.SensorKey), want) && s.Temperature > 0 {
				t := s.Temperature
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
