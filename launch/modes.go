package launch

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/flagos-ai/zlexec/classify"
	"github.com/flagos-ai/zlexec/env"
	"github.com/flagos-ai/zlexec/launch/backend"
	"github.com/flagos-ai/zlexec/sample"
)

// PrintEnv prints the command's environment as POSIX shell lines for eval: an
// unset for each variable that is there and must not be, an export for each
// that is set.
func PrintEnv(o Options, w io.Writer) error {
	r := run{Options: o, environ: environ()}
	if err := r.prepare(); err != nil {
		return err
	}
	var b strings.Builder
	for _, c := range r.changes {
		if c.After == nil {
			fmt.Fprintf(&b, "unset %s\n", c.Name)
		}
	}
	_, sets := env.Build(nil, r.plan)
	for _, c := range sets {
		value, _ := env.Lookup(r.childEnv, c.Name)
		fmt.Fprintf(&b, "export %s=%s\n", c.Name, shellQuote(value))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func shellQuote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// Sample prints one snapshot as JSON, of the devices or of a tool's saved output.
func Sample(o Options, from string, w io.Writer) error {
	r := run{Options: o, environ: environ()}
	if from == "" {
		if err := r.choose(); err != nil {
			return err
		}
		return printJSON(w, r.readings(o.TelemetryTimeout, nil), true)
	}
	data, err := readFile(from)
	if err != nil {
		return fmt.Errorf("--from %w", err)
	}
	tools, err := o.Backend.Tools()
	if err != nil {
		return err
	}
	return printJSON(w, sample.Parse(append(tools.Telemetry, tools.List...), data, time.Now()), true)
}

func readFile(name string) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(os.Stdin)
	}
	return os.ReadFile(name)
}

// ListDevices prints the devices that the backend can use here.
func ListDevices(o Options, w io.Writer, asJSON, torch bool) error {
	r := run{Options: o, environ: environ()}
	if err := r.choose(); err != nil {
		return err
	}
	devices, why := r.devices()
	if r.choice.Mask != nil {
		devices, why = narrow(devices, r.choice.Mask), ""
	}
	if len(devices) == 0 && torch && r.choice.Mask == nil {
		devices, why = backend.ProbeTorch(o.Backend.TorchNamespace, r.toolEnv(), torchTimeout)
	}
	if len(devices) == 0 {
		warn("no device: %s", cmpOr(why, "the mask hides every device"))
	}
	for _, d := range devices {
		if asJSON {
			if err := printJSON(w, d, false); err != nil {
				return err
			}
			continue
		}
		if _, err := fmt.Fprintf(w, "%-8s %-40s %s\n", d.Index, cmpOr(d.UUID, "-"), cmpOr(d.Name, "-")); err != nil {
			return err
		}
	}
	return nil
}

// torchTimeout: importing torch and counting devices took 2.7 s on an idle
// machine with one device; a cold file system takes many times that.
const torchTimeout = 60 * time.Second

// narrow keeps what the mask shows, in its order. An entry that the vendor's
// tool does not list is shown as the mask names it.
func narrow(devices []backend.Device, mask []string) []backend.Device {
	var list []backend.Device
	for _, entry := range mask {
		found := backend.Device{Index: entry}
		for _, d := range devices {
			if d.Index == entry || d.UUID == entry {
				found = d
			}
		}
		list = append(list, found)
	}
	return list
}

func cmpOr(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

// Classify prints the class, root and counts of an existing log as JSON, and
// returns the class's exit code.
func Classify(o Options, name string, explain bool, w io.Writer) (int, error) {
	in := io.Reader(os.Stdin)
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return 0, fmt.Errorf("--classify %w", err)
		}
		defer f.Close()
		in = f
	}
	c := classify.Config{Rules: backend.AllRules, Vendors: backend.Vendors, Extra: o.Markers, Pytest: true, Explain: explain}
	if o.Backend != nil {
		c.Rules, c.Vendor = o.Backend.Rules, o.Backend.Vendor
	}
	result, err := classify.ClassifyReader(c, in)
	if err != nil {
		return 0, fmt.Errorf("--classify %s: %w", name, err)
	}
	if result.Pytest != nil && result.Pytest.Failed == 0 {
		result.Pytest = nil // the log is not known to be pytest's
	}
	if explain {
		for _, e := range result.Events {
			if err := printJSON(w, e, false); err != nil {
				return 0, err
			}
		}
	}
	result.Events = nil
	return ClassCode(result.Class), printJSON(w, result, true)
}

func printJSON(w io.Writer, v any, indent bool) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	if indent {
		e.SetIndent("", "  ")
	}
	return e.Encode(v)
}
