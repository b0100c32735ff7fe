// Command zlexec runs a command on one vendor's accelerator: see README.md.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/flagos-ai/zlexec/classify"
	"github.com/flagos-ai/zlexec/launch"
	"github.com/flagos-ai/zlexec/launch/backend"
)

// cli is the command line: every flag also has a variable ZLEXEC_<FLAG>.
type cli struct {
	Backend string   `short:"b" placeholder:"NAME" env:"ZLEXEC_BACKEND,ZL_BACKEND" help:"Backend, one of its aliases (nvidia, amd, npu …), or auto. Needed to run a command."`
	Device  string   `short:"d" placeholder:"LIST" env:"ZLEXEC_DEVICE" help:"Devices the command may see: 0, 2,3, a UUID, none, or rank. Unset: the inherited mask, else all."`
	Keep    []string `placeholder:"NAME" help:"Leave this variable as it is (repeatable)."`

	Record   string `short:"r" placeholder:"FILE" help:"Append one JSON line about the run. {rank}, {job_id}, {step_id}, {hostname} and {pid} are filled in."`
	Identity string `placeholder:"FILE" help:"Write or merge run_identity.json."`

	Telemetry        string        `enum:"auto,off" default:"auto" placeholder:"auto|off" help:"Device readings before and after (auto, off)."`
	TelemetryTimeout time.Duration `default:"5s" placeholder:"5s" help:"Deadline of each reading."`

	Scan    string   `enum:"auto,stderr,both,none" default:"auto" placeholder:"WHICH" help:"Output to search for device errors: auto (stderr; stdout too for pytest), stderr, both, none."`
	Marker  []string `sep:"none" placeholder:"CLASS=TEXT" help:"One more marker: fatal=…, poisoned=… or recoverable=… (repeatable)."`
	Strict  bool     `xor:"mode" help:"Every class decides also when the command exits 0."`
	Lenient bool     `xor:"mode" help:"No class decides when the command exits 0."`

	Timeout       time.Duration `placeholder:"30m" help:"Stop a command that runs longer: TERM, then KILL after the grace."`
	Grace         time.Duration `default:"10s" placeholder:"10s" help:"Time between TERM and KILL."`
	Op            string        `placeholder:"NAME" help:"The operator under test; one that the backend denies capture runs with ZL_ENABLE_CUDAGRAPH=0."`
	DenyCapture   []string      `placeholder:"OP,…" help:"More operators that must not be captured."`
	RetryPoisoned bool          `help:"After a poisoned run, run once more with ZL_ENABLE_CUDAGRAPH=0."`
	BackendFile   []string      `sep:"none" placeholder:"FILE" help:"One more backend, or changes to one (repeatable)."`

	Quiet   bool `short:"q" xor:"loud" help:"Say nothing but errors and warnings of lost work."`
	Verbose bool `short:"v" xor:"loud" help:"Say the environment's changes and the readings too."`
	Exec    bool `help:"Set the environment and become the command: no readings, no classes, no record."`

	PrintEnv     bool   `group:"modes" help:"Print the environment's changes as shell lines for eval."`
	ListBackends bool   `group:"modes" help:"List the backends."`
	ListDevices  bool   `group:"modes" help:"List the backend's devices."`
	ProbeTorch   bool   `group:"modes" help:"With --list-devices: ask python's torch when nothing else tells."`
	JSON         bool   `group:"modes" name:"json" help:"With --list-devices and --list-backends: JSON lines."`
	Sample       bool   `group:"modes" help:"Print one snapshot of the device readings (JSON)."`
	From         string `group:"modes" placeholder:"FILE" help:"With --sample: read a vendor tool's saved output instead of running it."`
	Classify     string `group:"modes" placeholder:"FILE|-" help:"Classify an existing log (gzip too), as JSON; exits with the class's code."`
	Explain      bool   `group:"modes" help:"With --classify: every line that matched or was ignored on purpose."`
	Version      bool   `group:"modes" help:"Print the version."`

	Command []string `arg:"" optional:"" passthrough:"partial" help:"The command and its arguments, untouched."`
}

func main() {
	if launch.Internal(os.Args) {
		return
	}
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

// run is the whole program but for the process's end; it returns the exit code.
func run(args []string, stdout, stderr io.Writer) int {
	c, done, err := parse(args, stdout)
	if err == nil && done {
		return 0
	}
	code := 0
	if err == nil {
		code, err = c.dispatch(stdout)
	}
	if err == nil {
		return code
	}
	fmt.Fprintf(stderr, "zlexec: error: %s\n", strings.ReplaceAll(err.Error(), "\n", " "))
	if start, ok := errors.AsType[*launch.StartError](err); ok {
		return start.Code
	}
	return launch.ExitUsage
}

// parse reads the command line. done says that help was printed.
func parse(args []string, stdout io.Writer) (c *cli, done bool, err error) {
	if c, ok := plain(args, os.Environ()); ok {
		return c, false, nil
	}
	return viaKong(args, stdout)
}

func viaKong(args []string, stdout io.Writer) (c *cli, done bool, err error) {
	c = &cli{}
	parser, err := kong.New(c, kong.Name("zlexec"), kong.Description(description), kong.Writers(stdout, stdout), kong.DefaultEnvars("ZLEXEC"),
		kong.Exit(func(int) { done = true }), kong.ConfigureHelp(kong.HelpOptions{WrapUpperBound: 100}),
		kong.ExplicitGroups([]kong.Group{{Key: "modes", Title: "Modes, which run no command:"}}))
	if err != nil {
		return nil, false, err
	}
	_, err = parser.Parse(args)
	if done {
		return c, true, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("%w: see zlexec --help", err)
	}
	// kong has rewritten words that are not UTF-8; the command is the rest of the line.
	c.Command = args[len(args)-len(c.Command):]
	if len(c.Command) > 0 && c.Command[0] == "--" {
		c.Command = c.Command[1:] // exactly one: a second one is the command's
	}
	return c, false, nil
}

// plain reads the everyday command line: long or short flags that are known and
// right, and no variables in the place of flags. For all else it says no, and
// kong, whose grammar it reads off the same struct, decides. It is there because
// kong takes 0.8 ms of a start that takes 3; main_test.go holds the two equal.
func plain(args, environ []string) (*cli, bool) {
	for _, kv := range environ {
		if strings.HasPrefix(kv, "ZLEXEC_") || strings.HasPrefix(kv, "ZL_BACKEND=") {
			return nil, false
		}
	}
	c := &cli{}
	v := reflect.ValueOf(c).Elem()
	for i := range v.NumField() {
		if d := v.Type().Field(i).Tag.Get("default"); d != "" && !set(v.Field(i), d) {
			return nil, false
		}
	}
	groups := map[string]int{}
	for len(args) > 0 && strings.HasPrefix(args[0], "-") && args[0] != "-" {
		if args[0] == "--" {
			c.Command = args[1:]
			return c, len(c.Command) > 0
		}
		name, value, joined := strings.Cut(args[0], "=")
		i := field(v.Type(), name)
		if i < 0 {
			return nil, false
		}
		f := v.Type().Field(i)
		args = args[1:]
		if isBool := f.Type.Kind() == reflect.Bool; isBool && !joined {
			value = "true"
		} else if isBool || joined && len(name) == 2 {
			return nil, false
		} else if !joined {
			if len(args) == 0 || strings.HasPrefix(args[0], "-") {
				return nil, false
			}
			value, args = args[0], args[1:]
		}
		if e := f.Tag.Get("enum"); e != "" && !slices.Contains(strings.Split(e, ","), value) {
			return nil, false
		}
		if x := f.Tag.Get("xor"); x != "" {
			if other, taken := groups[x]; taken && other != i {
				return nil, false
			}
			groups[x] = i
		}
		if !set(v.Field(i), value) {
			return nil, false
		}
	}
	c.Command = args
	return c, true
}

// field returns the index of the field that a flag's word names, as kong spells
// it: the short form, or the name in lower case with hyphens. -1 for none.
func field(t reflect.Type, word string) int {
	for i := range t.NumField() {
		f := t.Field(i)
		name := f.Tag.Get("name")
		if name == "" {
			name = hyphenated(f.Name)
		}
		short, isShort := f.Tag.Lookup("short")
		if _, isArg := f.Tag.Lookup("arg"); !isArg && (word == "--"+name || isShort && word == "-"+short) {
			return i
		}
	}
	return -1
}

func hyphenated(name string) string {
	var b strings.Builder
	for i, r := range name {
		if i > 0 && r >= 'A' && r <= 'Z' {
			b.WriteByte('-')
		}
		b.WriteRune(r)
	}
	return strings.ToLower(b.String())
}

// set gives a field the value of a flag's text, if it has the plain form.
func set(f reflect.Value, value string) bool {
	switch p := f.Addr().Interface().(type) {
	case *bool:
		*p = true
	case *string:
		*p = value
	case *time.Duration:
		d, err := time.ParseDuration(value)
		*p = d
		return err == nil
	default:
		return false // lists: kong knows how they are separated
	}
	return true
}

const description = `Run a command on one vendor's accelerator: clear every other vendor's visibility variables, set this one's, read the devices before and after, and turn device errors in the output into exit codes.

  zlexec --backend ascend --device 3 -- pytest benchmark/test_attention.py

Exit codes: the command's own; 80 recoverable, 81 poisoned, 82 fatal device error; 124 --timeout; 125 zlexec itself; 126 and 127 the command cannot be executed or is not found.`

// dispatch chooses the mode.
func (c *cli) dispatch(stdout io.Writer) (int, error) {
	if c.Version {
		fmt.Fprintln(stdout, "zlexec", version())
		return 0, nil
	}
	files, err := backend.Open(c.BackendFile)
	if err != nil {
		return 0, err
	}
	if c.ListBackends {
		return 0, files.Print(stdout, c.JSON)
	}
	o, err := c.options(files)
	if err != nil {
		return 0, err
	}
	switch {
	case c.PrintEnv:
		return 0, launch.PrintEnv(o, stdout)
	case c.ListDevices:
		return 0, launch.ListDevices(o, stdout, c.JSON, c.ProbeTorch)
	case c.Sample:
		return 0, launch.Sample(o, c.From, stdout)
	case c.Classify != "":
		return launch.Classify(o, c.Classify, c.Explain, stdout)
	case len(c.Command) == 0:
		return 0, errors.New("no command: add one after the flags, such as: zlexec --backend cuda -- pytest")
	}
	return launch.Run(o)
}

// options translates the flags.
func (c *cli) options(files *backend.Files) (launch.Options, error) {
	o := launch.Options{Argv: c.Command, Device: c.device(files), Keep: c.Keep, Record: c.Record, Identity: c.Identity,
		Telemetry: c.Telemetry == "auto", TelemetryTimeout: c.TelemetryTimeout, Scan: c.Scan, Timeout: c.Timeout, Grace: c.Grace,
		Op: c.Op, DenyCapture: c.DenyCapture, RetryPoisoned: c.RetryPoisoned, Quiet: c.Quiet, Verbose: c.Verbose, Exec: c.Exec}
	switch {
	case c.Strict:
		o.Mode = launch.Strict
	case c.Lenient:
		o.Mode = launch.Lenient
	}
	for _, d := range []struct {
		flag string
		d    time.Duration
	}{{"--timeout", c.Timeout}, {"--grace", c.Grace}, {"--telemetry-timeout", c.TelemetryTimeout}} {
		if d.d < 0 {
			return o, fmt.Errorf("%s %s: must not be negative", d.flag, d.d)
		}
	}
	for _, m := range c.Marker {
		rule, err := classify.ParseMarker(m)
		if err != nil {
			return o, fmt.Errorf("--%w", err)
		}
		o.Markers = append(o.Markers, rule)
	}
	if c.Backend == "" {
		if c.Classify != "" {
			return o, nil
		}
		return o, errors.New("--backend is needed: name one (zlexec --list-backends shows them), or say --backend auto")
	}
	var err error
	if c.Backend == "auto" {
		o.Backend, err = files.Auto("/")
	} else {
		o.Backend, err = files.Load(c.Backend)
	}
	return o, err
}

// device returns the device list. ZL_DEVICE counts only for the backend that set
// it: an index of one vendor's device means nothing on another's.
func (c *cli) device(files *backend.Files) string {
	if c.Device != "" {
		return c.Device
	}
	theirs, set := os.LookupEnv("ZL_BACKEND")
	if !set || theirs == c.Backend {
		return os.Getenv("ZL_DEVICE")
	}
	if a, err := files.Load(theirs); err == nil {
		if b, err := files.Load(c.Backend); err == nil && a.Name == b.Name {
			return os.Getenv("ZL_DEVICE")
		}
	}
	return ""
}

// version is the module's version, or the commit that was built.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return "devel-" + s.Value[:min(12, len(s.Value))]
		}
	}
	return "devel"
}
