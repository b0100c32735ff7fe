package sample

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestValues(t *testing.T) {
	nan := math.NaN()
	for _, c := range []struct {
		name string
		unit unit
		text string
		want float64 // NaN: unknown
	}{
		{"MHz", megahertz, "(300Mhz)", 300}, {"MHz", megahertz, "1: (500Mhz)", 500}, {"MHz", megahertz, "S: (137Mhz)", 137},
		{"MHz", megahertz, "level 2 (2100Mhz)", 2100}, {"MHz", megahertz, "8", 8}, {"MHz", megahertz, "S", nan},
		{"MHz", megahertz, "1.4 GHz", 1400}, {"MHz", megahertz, "700000000 Hz", 700}, {"MHz", megahertz, "16000Mbps", nan},
		{"MHz", megahertz, "4294967295", nan}, {"MHz", megahertz, "0", 0},
		{"C", celsius, "35.0c", 35}, {"C", celsius, "29 °C", 29}, {"C", celsius, "76 ℃", 76}, {"C", celsius, "-5", -5}, {"C", celsius, "300 K", nan},
		{"W", watts, "72.35 W", 72.35}, {"W", watts, "17521800uW", 17.5218}, {"W", watts, "950mW", 0.95}, {"W", watts, "12 V", nan},
		{"W", watts, "N/A (Secondary die)", nan}, {"W", watts, "65535 W", nan},
		{"%", percent, "0%", 0}, {"%", percent, "20.3", 20.3}, {"%", percent, "12 MiB", nan},
		{"%", percent, "", nan}, {"%", percent, "N/A", nan}, {"%", percent, "[N/A]", nan}, {"%", percent, "-", nan}, {"%", percent, "--", nan},
		{"%", percent, "None", nan}, {"%", percent, "ERR!", nan}, {"%", percent, "[GPU is lost]", nan}, {"%", percent, "NaN", nan},
		{"%", percent, "Inf", nan}, {"%", percent, "0x1F", nan}, {"%", percent, "1e3", nan}, {"%", percent, "1,5", nan},
	} {
		got, ok := c.unit.read(c.text)
		if ok == math.IsNaN(c.want) || ok && got != c.want {
			t.Errorf("%q as %s: %v %v, want %v", c.text, c.name, got, ok, c.want)
		}
	}
}

// formats is one tool per format, all with the same keys.
func formatTools() map[string]Tool {
	fields := map[string][]string{"index": {"gpu"}, "temp_c": {"temperature.edge", "temperature.core*", "temp"}, "power_w": {"*.draw", "pwr"},
		"sm_clock_mhz": {"clocks.sm", "sclk"}, "util_pct": {"gpu%"}}
	tools := map[string]Tool{}
	for _, f := range []string{"csv", "json", "xml", "columns", "indent", "sections", "lines", "pairs"} {
		tool := Tool{Argv: []string{"x-smi"}, Formats: []string{f}, Fields: fields}
		switch f {
		case "json":
			tool.Devices = []string{"[]", "devices", `^card(\d+)$`}
		case "xml":
			tool.Devices = []string{"gpu"}
			tool.Fields = map[string][]string{"index": {"minor"}, "temp_c": {"temperature.core"}}
		case "indent":
			tool.Start = `^GPU (?P<index>\d+)$`
		case "sections":
			tool.Fields = map[string][]string{"card": {"NPU ID"}, "chip": {"Chip ID"}, "temp_c": {"Temperature"}, "power_w": {"Power"}}
			tool.Spread = "power_w"
		case "lines":
			tool.Line = []string{`^\| (?P<index>\d+) +(?P<name>\S+) +\|`, `^\| (?:(?P<temp_c>\S+C)|(?P<temp_c2>\S+F)) +(?P<power_w>\S+) \|`}
		case "pairs":
			tool.Formats = []string{"lines"}
			tool.Line = []string{`^GPU\[(?P<index>\d+)\]\s*: (?P<key>[^:]+): (?P<value>.*)$`}
		}
		tools[f] = tool
	}
	return tools
}

func TestFormats(t *testing.T) {
	for _, c := range []struct{ format, text, want string }{
		{"csv", "a note\ngpu, temp, pwr [W]\n0, 41, 30 W\n\n1, N/A, \"[1, 2]\"\ngpu, temp, pwr [W]\n", "0 41 30 -; 1 - - -"},
		{"csv", "gpu,temp,list,pwr\n0,41,[0, 0],30\n", "0 41 - -"}, // an unquoted list moves what follows
		{"csv", "gpu,temp\r\n0,41\r\n", "0 41 - -"},
		{"json", `WARNING: [not json` + "\n" + `{"card1":{"temp ":"40.5","sclk":"(300Mhz)"},"card0":{"temp":null},"system":{}}`, "1 40.5 - 300; 0 - - -"},
		{"json", `[{"gpu":0,"temperature":{"edge":{"value":36,"unit":"C"}},"power":{"draw":"N/A"}},{"gpu":1,"temperature":"N/A"}]`, "0 36 - -; 1 - - -"},
		{"json", `{"devices":[{"gpu":"npu3","temperature":{"core a":1},"x":{"draw":"2 W"}}]}`, "3 1 2 -"},
		{"xml", `<?xml version="1.0"?><!DOCTYPE l SYSTEM "l.dtd"><l><gpu id="a"><minor>1</minor><temperature><core>50 C</core><max>99 C</max></temperature></gpu></l>`, "1 50 - -"},
		{"columns", "GPU  Temp  Pwr  SCLK    GPU%\n     (edge)\n0    40c   8W   300Mhz  1%\nGPU[0] : a message between\n3    N/A        N/A     N/A\n", "0 40 8 300; 3 - - -"},
		{"columns", "| GPU | Temp | Pwr |\n|-----|------|-----|\n|   0 | 40 C |     |\n", "0 40 - -"},
		{"columns", "# gpu pwr temp\n# Idx  W   C\n    0   9  41\n", "0 41 9 -"},
		{"columns", "GPU  Temp    Pwr     SCLK    GPU%\n0    40.0c  120.0W  1200Mhz 1%\n", "0 40 120 1200"},
		{"indent", "GPU 0\n    Temperature\n        Core a : 40 C\n        Max : 99 C\n    Max Clocks\n        SM : 2000 MHz\n    Clocks\n        SM : 210 MHz\nGPU 1\n    Clocks : N/A\n", "0 40 - 210; 1 - - -"},
		{"sections", "\tNPU ID : 5\n\tChip Count : 2\n\n\tChip ID : 0\n\tTemperature : 40\n\n\tTemperature : 41\n\tChip ID : 1\n\n\tChip Name : mcu\n\tTemperature : 30\n\tPower : 42.5\n", "5/0 40 42.5 -; 5/1 41 - -"},
		{"sections", "NPU ID : 5\nTemperature : 40\nPower : 3\n", "5 40 3 -"},
		{"sections", "NPU ID : 5\nChip Count : 1\n\nNPU ID : 6\nChip Count : 1\n", "5 - - -; 6 - - -"},
		{"lines", "| 0 A |\n| 40C 9W |\n+---+\n| 12 B |\n| 104F 8W |\n", "0 40 9 -; 12 - 8 -"},
		{"pairs", "GPU[0]\t: temp: 40\nGPU[1]\t: temp: 41\nGPU[0]\t: sclk: 1: (500Mhz)\nGPU[7]\t: ERROR: not supported\n", "0 40 - 500; 1 41 - -"},
	} {
		readings, err := ParseOutput(formatTools()[c.format], []byte(c.text))
		if got := show(readings); err != nil || got != c.want {
			t.Errorf("%s:\n%s\ngot  %s (%v)\nwant %s", c.format, c.text, got, err, c.want)
		}
	}
}

func show(readings []Reading) string {
	number := func(v *float64) string {
		if v == nil {
			return "-"
		}
		return fmt.Sprint(*v)
	}
	var s []string
	for _, d := range readings {
		s = append(s, fmt.Sprintf("%s %s %s %s", *d.Index, number(d.TempC), number(d.PowerW), number(d.SMClockMHz)))
	}
	return strings.Join(s, "; ")
}

func TestNoReading(t *testing.T) {
	for _, text := range []string{"", " \n\t\n", "No devices were found\n", "gpu, temp\n", "{}", "[]", `{"card0": "N/A"`,
		"gpu, temp\n0, 40\n0, 41\n", "<gpu>", strings.Repeat("[", 100000), strings.Repeat(`{"a":`, 100000)} {
		for name, tool := range formatTools() {
			if name == "xml" && text == "<gpu>" {
				continue // a device that was cut before its first value
			}
			if readings, err := ParseOutput(tool, []byte(text)); err == nil {
				t.Errorf("%s: %.40q was read as %s", name, text, show(readings))
			}
		}
	}
}

func TestOtherVendorsTool(t *testing.T) {
	tool := formatTools()["columns"]
	tool.Recognise, tool.Reject = "First Interface", "DCU%"
	good := "== First Interface ==\nGPU  Temp\n0    40c\n"
	if _, err := ParseOutput(tool, []byte(good)); err != nil {
		t.Error(err)
	}
	for _, text := range []string{"GPU  Temp\n0    40c\n", good + "DCU%\n"} {
		if _, err := ParseOutput(tool, []byte(text)); err == nil {
			t.Errorf("%q was taken for the tool's own", text)
		}
	}
}

func TestParseSaved(t *testing.T) {
	tool := Tool{Argv: []string{"x-smi", "--query=index,temp", "--format=csv"}, Formats: []string{"csv"}}
	tool.Fields = map[string][]string{"temp_c": {"temp"}, "power_w": {"power"}}
	text := "# $ x-smi --query=index,power,temp --format=csv,noheader\n## synthetic\n0, 10, 40\n"
	s := Parse([]Tool{{Formats: []string{"host"}}, tool}, []byte(text), time.Unix(1, 0))
	if s.State != OK || show(s.Devices) != "0 40 10 -" || s.Host != nil {
		t.Errorf("state %s, %s", s.State, show(s.Devices))
	}
	if s := Parse([]Tool{tool}, []byte("0, 10, 40\n"), time.Unix(1, 0)); s.State != Malformed || s.Detail == nil {
		t.Errorf("columns without names: state %s, %s", s.State, show(s.Devices))
	}
}

func TestCheck(t *testing.T) {
	good := Tool{Argv: []string{"x"}, Formats: []string{"csv"}}
	for name, bad := range map[string]func(*Tool){
		"no argv":       func(t *Tool) { t.Argv = nil },
		"no format":     func(t *Tool) { t.Formats = nil },
		"other format":  func(t *Tool) { t.Formats = []string{"yaml"} },
		"other field":   func(t *Tool) { t.Fields = map[string][]string{"fan": {"fan"}} },
		"bad pattern":   func(t *Tool) { t.Stop = "(" },
		"bad map":       func(t *Tool) { t.Map = &Map{Line: []string{"("}} },
		"bad extra":     func(t *Tool) { t.Extra = []Tool{{}} },
		"bad devices":   func(t *Tool) { t.Devices = []string{"^("} },
		"bad recognise": func(t *Tool) { t.Recognise = "[" },
	} {
		tool := good
		if bad(&tool); tool.Check() == nil {
			t.Errorf("%s passed", name)
		}
	}
	if err := good.Check(); err != nil {
		t.Error(err)
	}
}

func TestSysfs(t *testing.T) {
	root := t.TempDir()
	put := func(path, text string) {
		path = filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err == nil {
			err = os.WriteFile(path, []byte(text), 0o644)
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	link := func(card, address string) {
		dir := filepath.Join(root, "sys/class/drm", card)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(filepath.Join(root, "devices", address), filepath.Join(dir, "device")); err != nil {
			t.Fatal(err)
		}
	}
	for address, vendor := range map[string]string{"0000:83:00.0": "0x1002\n", "0000:03:00.0": "0x1002\n", "0000:01:00.0": "0x1a03\n"} {
		put("devices/"+address+"/vendor", vendor)
	}
	put("devices/0000:03:00.0/pp_dpm_sclk", "0: 500Mhz\n1: 1700Mhz *\n")
	put("devices/0000:03:00.0/hwmon/hwmon3/temp1_input", "46500\n")
	put("devices/0000:03:00.0/hwmon/hwmon3/power1_average", "88000000\n")
	put("devices/0000:03:00.0/gpu_busy_percent", "7\n")
	put("devices/0000:83:00.0/hwmon/hwmon4/freq1_input", "300000000\n")
	link("card0", "0000:01:00.0")
	link("card1", "0000:83:00.0")
	link("card2", "0000:03:00.0")
	link("card2-DP-1", "0000:03:00.0")
	tool := Tool{Formats: []string{"sysfs"}, Devices: []string{"0x1002"}, Fields: map[string][]string{
		"sm_clock_mhz": {"hwmon/hwmon*/freq1_input", "pp_dpm_sclk"}, "temp_c": {"hwmon/hwmon*/temp1_input"},
		"power_w": {"hwmon/hwmon*/power1_input", "hwmon/hwmon*/power1_average"}, "util_pct": {"gpu_busy_percent"}}}
	s := Take(Request{Tools: []Tool{tool}, Timeout: plenty, NoHost: true, Root: root})
	if s.State != OK || show(s.Devices) != "0 46.5 88 1700; 1 - - 300" || *s.Devices[0].UtilPct != 7 {
		t.Errorf("state %s: %s", s.State, show(s.Devices))
	}
	s = Take(Request{Tools: []Tool{tool}, Timeout: plenty, NoHost: true, Root: t.TempDir()})
	if s.State != None || len(s.Devices) != 0 {
		t.Errorf("no adapter: state %s", s.State)
	}
}

func TestHost(t *testing.T) {
	r := Request{Tools: []Tool{{Formats: []string{"host"}}}, Timeout: plenty}
	before := Take(r)
	if before.State != OK || len(before.Devices) != 1 || before.Host.Load1 == nil || before.Host.MemAvailableMiB == nil {
		t.Fatalf("before: %+v %+v", before, before.Host)
	}
	if before.Host.CPUUtilPct != nil || before.Devices[0].UtilPct != nil {
		t.Error("utilisation without a span of time")
	}
	r.Since = &before
	for range 100 { // /proc/stat counts in hundredths of a second
		if after := Take(r); after.Host.CPUUtilPct != nil {
			if u := *after.Host.CPUUtilPct; u < 0 || u > 100 || *after.Devices[0].UtilPct != u {
				t.Errorf("utilisation %v", u)
			}
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Error("no utilisation after a second")
}

func TestCPUInfo(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cpuinfo")
	text := "processor : 0\nmodel name\t: A: B\ncpu MHz\t\t: 1000.5\n\nprocessor : 1\nmodel name\t: A: B\ncpu MHz\t\t: 2000.5\n"
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if name, mhz := cpuInfo(path); *name != "A: B" || *mhz != 1500.5 {
		t.Errorf("%s %v", *name, *mhz)
	}
	if name, mhz := cpuInfo(path + "x"); name != nil || mhz != nil {
		t.Error("a processor out of nothing")
	}
}

// FuzzParse: no panic; an error or at least one device; every value finite and in
// reach; no index twice.
func FuzzParse(f *testing.F) {
	for _, text := range []string{"gpu, temp\n0, 41\n", `{"card0":{"temp":"40"}}`, `[{"gpu":0}]`, "<l><gpu><minor>1</minor></gpu></l>",
		"GPU  Temp\n0    40c\n", "GPU 0\n  Temp : 4\n", "NPU ID : 1\nChip ID : 0\nPower : 3\n", "| 0 A |\n| 40C 9W |\n", "GPU[0]\t: temp: 40\n", "\x1b[3m"} {
		f.Add([]byte(text))
	}
	tools := formatTools()
	f.Fuzz(func(t *testing.T, out []byte) {
		for name, tool := range tools {
			readings, err := ParseOutput(tool, out)
			if (err == nil) != (len(readings) > 0) && err == nil {
				t.Fatalf("%s: no error and no device", name)
			}
			seen := map[string]bool{}
			for _, d := range readings {
				for _, v := range []*float64{d.SMClockMHz, d.MemClockMHz, d.TempC, d.PowerW, d.UtilPct} {
					if v != nil && (math.IsNaN(*v) || math.IsInf(*v, 0) || *v >= notAValue) {
						t.Fatalf("%s: value %v", name, *v)
					}
				}
				if err == nil && d.Index != nil {
					if seen[*d.Index] {
						t.Fatalf("%s: index %s twice", name, *d.Index)
					}
					seen[*d.Index] = true
				}
			}
		}
	})
}

func TestProcessorTimesAndTemperature(t *testing.T) {
	root := t.TempDir()
	write := func(name, text string) {
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	write("stat", "cpu  10 2 3 80 5 1 1 0 7 0\ncpu0 1 1 1 1 1 1 1 1 1 1\n")
	if got := readTimes(filepath.Join(root, "stat")); got == nil || *got != (cpuTimes{busy: 17, total: 102}) {
		t.Errorf("times: %+v", got)
	}
	for _, odd := range []string{"", "cpu 1 2\n", "cpu a b c d e f g h\n", "intr 1 2 3 4 5 6 7 8 9\n"} {
		write("odd", odd)
		if got := readTimes(filepath.Join(root, "odd")); got != nil {
			t.Errorf("%q: %+v", odd, got)
		}
	}
	if got := readTemp(root); got != nil {
		t.Errorf("no sensor: %v", *got)
	}
	write("sys/class/hwmon/hwmon0/temp1_label", "Core 0\n")
	write("sys/class/hwmon/hwmon0/temp1_input", "99000\n")
	write("sys/class/thermal/thermal_zone0/type", "cpu-thermal\n")
	write("sys/class/thermal/thermal_zone0/temp", "41500\n")
	if got := readTemp(root); got == nil || *got != 41.5 {
		t.Errorf("thermal zone: %v", got)
	}
	write("sys/class/hwmon/hwmon0/temp2_label", "Package id 0\n")
	write("sys/class/hwmon/hwmon0/temp2_input", "52000\n")
	if got := readTemp(root); got == nil || *got != 52 {
		t.Errorf("package: %v", got)
	}
}
