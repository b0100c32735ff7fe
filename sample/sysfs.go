package sample

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// readSysfs reads the display adapters of one vendor (Devices holds its PCI id,
// such as "0x1002") under /sys/class/drm. Each of Fields lists files below the
// adapter's directory, best first, as glob patterns. The index is the rank in PCI
// order, as the vendor's own tool counts: cardN is the order of the drivers.
func (t Tool) readSysfs(root string) (all []Reading) {
	cards, _ := filepath.Glob(filepath.Join("/", root, "sys/class/drm/card*/device"))
	adapters := map[string]string{} // PCI address: directory
	for _, dir := range cards {
		real, err := filepath.EvalSymlinks(dir)
		if err == nil && slices.Contains(t.Devices, firstLine(filepath.Join(dir, "vendor"))) {
			adapters[filepath.Base(real)] = dir // connectors lead to the same device
		}
	}
	addresses := make([]string, 0, len(adapters))
	for a := range adapters {
		addresses = append(addresses, a)
	}
	slices.Sort(addresses)
	for i, a := range addresses {
		r := row{}
		r.add("index", strconv.Itoa(i))
		for field, patterns := range t.Fields {
			if v := fileValue(adapters[a], patterns); v != "" {
				r.add(field, v)
			}
		}
		found, _ := Tool{}.readings([]row{r})
		all = append(all, found...)
	}
	return all
}

// fileValue returns the first readable value with its unit. A file may be missing,
// or refuse to be read while the adapter sleeps.
func fileValue(dir string, patterns []string) string {
	for _, p := range patterns {
		files, _ := filepath.Glob(filepath.Join(dir, p))
		for _, f := range files {
			data, err := os.ReadFile(f)
			if err != nil {
				continue
			}
			if v := fileUnit(filepath.Base(f), string(data)); v != "" {
				return v
			}
		}
	}
	return ""
}

// fileUnit adds the unit that the kernel's documentation gives to a file's name
// (hwmon: millidegrees, microwatts and hertz; pp_dpm_*: the starred line).
func fileUnit(name, data string) string {
	data = strings.TrimSpace(data)
	switch {
	case strings.HasPrefix(name, "pp_dpm_"):
		for line := range strings.Lines(data) {
			if _, clock, ok := strings.Cut(line, ":"); ok && strings.HasSuffix(strings.TrimSpace(clock), "*") {
				return strings.TrimSuffix(strings.TrimSpace(clock), "*")
			}
		}
		return ""
	case strings.HasPrefix(name, "temp"):
		if n, err := strconv.ParseFloat(data, 64); err == nil {
			return strconv.FormatFloat(n/1000, 'f', -1, 64)
		}
		return ""
	case strings.HasPrefix(name, "power"):
		return data + " uW"
	case strings.HasPrefix(name, "freq"):
		return data + " Hz"
	}
	return data
}

func firstLine(path string) string {
	data, _ := os.ReadFile(path)
	line, _, _ := strings.Cut(string(data), "\n")
	return strings.TrimSpace(line)
}
