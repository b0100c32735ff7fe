package backend

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pelletier/go-toml/v2"

	"github.com/flagos-ai/zlexec/sample"
)

// tools is what the tests need of a backend file.
type tools struct {
	Telemetry []sample.Tool `toml:"telemetry"`
	List      []sample.Tool `toml:"list"`
}

// readTools decodes a backend file; other keys are the loader's business.
func readTools(t testing.TB, name string) tools {
	t.Helper()
	data, err := os.ReadFile(name + ".toml")
	if err != nil {
		t.Fatal(err)
	}
	data, _, _ = bytes.Cut(data, []byte("\n[[marker]]"))
	var all tools
	if err := toml.Unmarshal(data, &all); err != nil {
		t.Fatalf("%s.toml: %v", name, err)
	}
	return all
}

// owners says whose files read the corpus' tools. notCalled are kinds of output
// that no call of ours and no fallback gives, by the beginning of a sample's name.
var owners = map[string]struct {
	backend   string
	notCalled []string
}{
	"amd-smi":           {"rocm", nil},
	"cnmon":             {"cambricon", nil},
	"dlsmi":             {"denglin", nil},
	"efsmi":             {"enflame", nil},
	"furiosa-smi":       {"furiosa", nil},
	"hl-smi":            {"gaudi", nil},
	"hy-smi":            {"hygon", nil},
	"ixsmi":             {"iluvatar", nil},
	"mthreads-gmi":      {"musa", nil},
	"mx-smi":            {"metax", nil},
	"neuron-monitor":    {"neuron", []string{"json_"}}, // streams for ever and tells no reading
	"npu-smi":           {"ascend", nil},
	"nvidia-smi":        {"cuda", nil},
	"rbln-stat":         {"rbln", nil},
	"rocm-smi":          {"rocm", nil},
	"xpu-smi-intel":     {"xpu", nil},
	"xpu-smi-kunlunxin": {"kunlunxin", nil},
}

type corpusSample struct {
	Argv     []string            `json:"argv"`
	Expected []map[string]string `json:"expected"`
	Alt      []map[string]string `json:"alt_expected"`
	Error    bool                `json:"expected_error"`
}

// TestCorpus reads every sample of the shared corpus as --sample --from would.
func TestCorpus(t *testing.T) {
	dir := filepath.Join("..", "..", "..", "shared", "corpus", "telemetry")
	if d := os.Getenv("ZLEXEC_TELEMETRY_CORPUS"); d != "" {
		dir = d
	}
	dirs, _ := filepath.Glob(filepath.Join(dir, "*", "*.json"))
	if len(dirs) == 0 {
		t.Skipf("no telemetry corpus at %s", dir)
	}
	type tally struct{ right, wrong, notCalled int }
	tallies := map[string]*tally{}
	order := []string{}
	for _, file := range dirs {
		cli := filepath.Base(filepath.Dir(file))
		if tallies[cli] == nil {
			tallies[cli] = &tally{}
			order = append(order, cli)
		}
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		owner := owners[cli]
		if hasPrefix(name, owner.notCalled) {
			tallies[cli].notCalled++
			continue
		}
		if why := readSample(t, owner.backend, file); why != "" {
			tallies[cli].wrong++
			t.Errorf("%s/%s: %s", cli, name, why)
			continue
		}
		tallies[cli].right++
	}
	var table strings.Builder
	fmt.Fprintf(&table, "\n%-18s %6s %6s %13s\n", "tool", "right", "wrong", "not our calls")
	for _, cli := range order {
		fmt.Fprintf(&table, "%-18s %6d %6d %13d\n", cli, tallies[cli].right, tallies[cli].wrong, tallies[cli].notCalled)
	}
	t.Log(table.String())
}

func hasPrefix(name string, prefixes []string) bool {
	for _, p := range prefixes {
		if strings.HasPrefix(name, p) {
			return true
		}
	}
	return false
}

// readSample returns why a sample is read wrongly, or "".
func readSample(t *testing.T, backend, file string) string {
	var want corpusSample
	data, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(data, &want)
	}
	if err != nil {
		return err.Error()
	}
	text, err := os.ReadFile(strings.TrimSuffix(file, ".json") + ".txt")
	if err != nil {
		return err.Error()
	}
	if _, err := os.Stat(backend + ".toml"); err != nil {
		return "no backend file reads this tool"
	}
	all := readTools(t, backend)
	text = append([]byte("# $ "+strings.Join(want.Argv, " ")+"\n"), text...)
	got := sample.Parse(append(all.Telemetry, all.List...), text, time.Time{})
	if want.Error {
		if len(got.Devices) > 0 || got.Detail == nil || got.State == sample.OK {
			return fmt.Sprintf("an error was read as %d devices, state %s", len(got.Devices), got.State)
		}
		return ""
	}
	why := compare(want.Expected, got)
	if why != "" && want.Alt != nil && compare(want.Alt, got) == "" {
		why = ""
	}
	return why
}

// compare says how got differs from what is expected: values as numbers.
func compare(want []map[string]string, got sample.Snapshot) string {
	if len(want) != len(got.Devices) {
		detail := ""
		if got.Detail != nil {
			detail = *got.Detail
		}
		return fmt.Sprintf("%d devices, want %d (%s %s)", len(got.Devices), len(want), got.State, detail)
	}
	for i, w := range want {
		d := got.Devices[i]
		index := ""
		if d.Index != nil {
			index = *d.Index
		}
		if index != w["index"] {
			return fmt.Sprintf("device %d: index %q, want %q", i, index, w["index"])
		}
		for key, v := range map[string]*float64{"sm_clock_mhz": d.SMClockMHz, "mem_clock_mhz": d.MemClockMHz,
			"temp_c": d.TempC, "power_w": d.PowerW, "util_pct": d.UtilPct} {
			n, err := strconv.ParseFloat(w[key], 64)
			if (err == nil) != (v != nil) || v != nil && *v != n {
				return fmt.Sprintf("device %d: %s is %s, want %q", i, key, show(v), w[key])
			}
		}
	}
	return ""
}

func show(v *float64) string {
	if v == nil {
		return "unknown"
	}
	return strconv.FormatFloat(*v, 'f', -1, 64)
}
