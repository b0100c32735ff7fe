// Package launch runs one command for a backend: it builds the environment,
// starts the command in this process's place, relays and looks at its output,
// takes readings before and after, and says how it ended.
package launch

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/flagos-ai/zlexec/classify"
	"github.com/flagos-ai/zlexec/env"
	"github.com/flagos-ai/zlexec/launch/backend"
	"github.com/flagos-ai/zlexec/sample"
)

// Options is one run, as the command line describes it (DESIGN.md, section 2).
type Options struct {
	Backend *backend.Backend
	Argv    []string
	// Device is the user's list, "none", "rank", or empty for the inherited mask.
	Device string
	Keep   []string

	Record, Identity string // files; empty for none

	Telemetry        bool
	TelemetryTimeout time.Duration

	Scan    string // auto, stderr, both, none
	Markers []classify.Rule
	Mode    Mode

	Timeout, Grace time.Duration // Timeout 0: no limit
	Op             string        // the operator under test
	DenyCapture    []string      // operators that must not be captured, beside the backend's own
	RetryPoisoned  bool

	Quiet, Verbose, Exec bool
}

// Run runs the command and returns the exit code, unless zlexec ends by the
// signal that ended the command. What goes wrong before the command has started
// is an error: a *StartError, or one of usage.
func Run(o Options) (int, error) {
	r := run{Options: o, environ: environ()}
	if err := r.prepare(); err != nil {
		return 0, err
	}
	if o.Exec || r.nothingToDo() {
		file, err := lookup(o.Argv[0], r.childEnv)
		if err == nil {
			err = &StartError{o.Argv[0], execute(file, o.Argv, r.childEnv), ExitCannotExecute}
		}
		return 0, err
	}
	return r.supervise()
}

// run is one run under way.
type run struct {
	Options
	environ   []string // as the caller handed it over
	scheduler *Scheduler
	choice    env.Choice
	device    string // what was chosen, in the runtime's numbering; empty when nothing was
	plan      env.Plan
	childEnv  []string
	changes   []env.Change
	noGraphs  bool
}

// nothingToDo: then the command takes zlexec's place, and nothing at all stands
// between it and its caller.
func (r *run) nothingToDo() bool {
	return r.Scan == "none" && !r.Telemetry && r.Record == "" && r.Identity == "" && r.Timeout == 0 && !r.RetryPoisoned
}

func (r *run) prepare() error {
	r.scheduler = DetectScheduler(r.environ)
	if err := r.choose(); err != nil {
		return err
	}
	if r.choice.Warning != "" && !r.Quiet {
		warn("%s", r.choice.Warning)
	}
	r.noGraphs = !slices.Contains(r.Backend.Capabilities, "cuda_graph") ||
		r.Op != "" && (slices.Contains(r.Backend.CaptureDeny, r.Op) || slices.Contains(r.DenyCapture, r.Op))
	r.build()
	if r.Verbose {
		r.describe()
	}
	if r.RetryPoisoned && !replayable(0) {
		return errors.New("--retry-poisoned: stdin is neither a terminal nor a null device, and cannot be given to a second attempt: add </dev/null, or leave the flag out")
	}
	return nil
}

// choose settles the devices that the command may see.
func (r *run) choose() error {
	device := r.Device
	vars := r.Backend.Visibility
	if device == "rank" {
		entry, err := r.rankDevices()
		if err != nil {
			return err
		}
		device = entry
	}
	if fields := strings.Split(device, ","); device != "" {
		// "0, 1" and "0,1" are one list; the record and ZL_DEVICE have the latter.
		for i := range fields {
			fields[i] = strings.TrimSpace(fields[i])
		}
		r.device = strings.Join(fields, ",")
	}
	choice, err := env.Choose(vars, r.environ, device, InAllocation(r.environ), r.sameDevice)
	if err != nil {
		return fmt.Errorf("%w (backend %s)", err, r.Backend.Name)
	}
	if device != "" {
		r.device = choice.Mask.String()
	}
	r.choice = choice
	return nil
}

// rankDevices resolves --device rank: this rank's part of the inherited mask,
// else of the devices that the vendor's tool lists.
func (r *run) rankDevices() (string, error) {
	rank, ranks, err := LocalRank(r.environ)
	if err != nil {
		return "", err
	}
	mask, err := env.Choose(r.Backend.Visibility, r.environ, "", InAllocation(r.environ), nil)
	if err != nil {
		return "", err
	}
	if mask.Mask != nil {
		own, err := RankDevices(mask.Mask, rank, ranks, divided(r.environ, len(mask.Mask)))
		return strings.Join(own, ","), err
	}
	devices, why := r.devices()
	var entries []string
	for _, d := range devices {
		entries = append(entries, d.Index)
	}
	if entries == nil {
		return "", fmt.Errorf("--device rank: no mask is inherited and no device is listed: %s", why)
	}
	own, err := RankDevices(entries, rank, ranks, false)
	return strings.Join(own, ","), err
}

// sameDevice reports whether an index and a UUID name one device.
func (r *run) sameDevice(a, b string) bool {
	devices, _ := r.devices()
	return slices.ContainsFunc(devices, func(d backend.Device) bool {
		return d.UUID != "" && (d.Index == a && d.UUID == b || d.Index == b && d.UUID == a)
	})
}

func (r *run) devices() ([]backend.Device, string) {
	tools, err := r.Backend.Tools()
	if err != nil {
		return nil, err.Error()
	}
	if len(tools.List) == 0 { // some tools list their devices only with the readings
		tools.List = tools.Telemetry
	}
	return backend.Enumerate(tools.List, r.toolEnv(), r.TelemetryTimeout)
}

// toolEnv is the environment of vendor tools: without any mask, which some of
// them would apply.
func (r *run) toolEnv() []string {
	clean, _ := env.Build(r.environ, env.Plan{})
	return clean
}

func (r *run) build() {
	b := r.Backend
	set := slices.Clone(b.Set)
	add := func(name, value string) { set = append(set, env.Setting{Name: name, Value: value}) }
	if b.Vendor != "" {
		add("GEMS_VENDOR", b.Vendor)
	}
	add("ZL_BACKEND", b.Name)
	if r.device != "" {
		add("ZL_DEVICE", r.device)
	}
	add("ZL_CAPABILITIES", strings.Join(b.Capabilities, ","))
	if r.noGraphs {
		add("ZL_ENABLE_CUDAGRAPH", "0")
	}
	if len(b.PytestPlugins) > 0 {
		plugins := b.PytestPlugins
		if theirs, ok := env.Lookup(r.environ, "PYTEST_PLUGINS"); ok && theirs != "" {
			plugins = append(slices.Clone(plugins), theirs)
		}
		add("PYTEST_PLUGINS", strings.Join(plugins, ","))
	}
	// A ZL_DEVICE that was not chosen here would name another run's device.
	r.plan = env.Plan{Visibility: b.Visibility, Mask: r.choice.Mask, Set: set, Clear: []string{"ZL_DEVICE"},
		Keep: append(slices.Clone(b.Keep), r.Keep...)}
	r.childEnv, r.changes = env.Build(r.environ, r.plan)
}

// describe says with -v what the command's environment differs in.
func (r *run) describe() {
	for _, c := range r.changes {
		switch {
		case c.After == nil:
			say("unset %s (was %s)", c.Name, *c.Before)
		case c.Before == nil:
			say("set %s=%s", c.Name, *c.After)
		default:
			say("set %s=%s (was %s)", c.Name, *c.After, *c.Before)
		}
	}
	for _, p := range env.Present(r.environ) {
		say("left alone: %s", p)
	}
}

// scanner returns the scanner of one attempt, and which outputs it looks at.
func (r *run) scanner() (s *classify.Scanner, out, err bool) {
	pytest := isPytest(r.Argv)
	switch r.Scan {
	case "both":
		out, err = true, true
	case "stderr":
		err = true
	case "auto":
		out, err = pytest, true
	}
	return classify.New(classify.Config{Rules: r.Backend.Rules, Vendor: r.Backend.Vendor, Vendors: backend.Vendors, Pytest: pytest, Extra: r.Markers}), out, err
}

// readings takes a snapshot of the chosen devices.
func (r *run) readings(timeout time.Duration, since *Snapshot) Snapshot {
	tools, err := r.Backend.Tools()
	if err != nil { // only a file that is embedded can be wrong here, and a test reads them all
		warn("%v", err)
	}
	s := sample.Take(sample.Request{Tools: tools.Telemetry, Devices: r.choice.Mask, Timeout: timeout, Env: r.toolEnv(), Since: since})
	if r.Verbose {
		for _, d := range s.Devices {
			say("%s", deviceLine(sample.Reading{}, d))
		}
		if s.State != sample.OK {
			say("readings: %s (%s)", s.State, text(s.Detail))
		}
	}
	return s
}

// start runs the command once.
func (r *run) start(again bool) (outcome, classify.Result, error) {
	scanner, out, err := r.scanner()
	o, failure := attempt{argv: r.Argv, environ: r.childEnv, scanOut: out, scanErr: err,
		stream:  func(name string) io.Writer { return scanner.Stream(name) },
		timeout: r.Timeout, grace: r.Grace, quiet: r.Quiet, again: again}.run()
	if failure != nil {
		return o, classify.Result{}, failure
	}
	return o, scanner.Result(), nil
}

// supervise runs the command under zlexec.
func (r *run) supervise() (int, error) {
	hostname, _ := os.Hostname() // empty where the kernel does not tell
	rec := &Record{Schema: "zlexec/1", StartedAt: time.Now().UTC().Truncate(time.Millisecond), Hostname: hostname, Argv: r.Argv, Backend: r.Backend.Name,
		Vendor: optional(r.Backend.Vendor), Device: optional(r.device), Op: optional(r.Op), Env: r.changes, Scheduler: r.scheduler,
		Telemetry: map[string]Snapshot{}, Attempts: 1}
	if wd, err := os.Getwd(); err == nil {
		rec.Cwd = &wd
	}
	if r.choice.Mask != nil {
		rec.Mask = new(strings.Join(r.choice.Mask, ","))
	}
	if r.Telemetry {
		rec.Telemetry["before"] = r.readings(r.TelemetryTimeout, nil)
	}
	o, result, err := r.start(r.RetryPoisoned)
	if err != nil {
		return 0, err
	}
	if r.RetryPoisoned && result.Class == classify.Poisoned && !o.someoneStopped() {
		rec.Earlier = append(rec.Earlier, Attempt{seconds(o.duration), exitStatus(o), result.Class, result.Root})
		if !r.Quiet {
			say("poisoned (%s): running it again with ZL_ENABLE_CUDAGRAPH=0", result.Root.Marker)
		}
		r.noGraphs = true
		r.build()
		rec.Env, rec.Attempts = r.changes, 2
		if o, result, err = r.start(false); err != nil {
			return 0, err
		}
	}
	if r.Telemetry {
		timeout := r.TelemetryTimeout
		if o.someoneStopped() {
			timeout = min(timeout, stopTime)
		}
		before := rec.Telemetry["before"]
		rec.Telemetry["after"] = r.readings(timeout, &before)
	}
	return r.close(rec, o, result), nil
}

// stopTime bounds the readings after a command that someone stopped: a
// scheduler kills what is left a few seconds later, and the record must be
// written before that.
const stopTime = 2 * time.Second

// close writes what was asked for, says what came out, and ends as the command did.
func (r *run) close(rec *Record, o outcome, result classify.Result) int {
	v := judge(o, result.Class, r.Mode)
	rec.DurationS = seconds(o.duration)
	rec.Exit, rec.ExitCode, rec.Usage = exitStatus(o), v.code, usage(o)
	rec.Class, rec.Root, rec.Otherwise, rec.Counts = result.Class, result.Root, result.Otherwise, result.Counts
	rec.ForeignVendors, rec.Pytest = result.ForeignVendors, result.Pytest
	if rec.ForeignVendors == nil {
		rec.ForeignVendors = []string{}
	}
	if r.Record != "" {
		if err := rec.append(r.Record); err != nil {
			warn("--record %s: the record is not written: %v", r.Record, err)
		}
	}
	if r.Identity != "" {
		if err := r.identity().write(r.Identity); err != nil {
			warn("--identity: %v", err)
		}
	}
	if o.stuck {
		warn("the command does not die of SIGKILL, as a process stuck in a driver does: it is left behind")
	}
	if !r.Quiet {
		rec.closing(v)
	}
	if v.signal != 0 {
		dieBy(v.signal)
	}
	return v.code
}

func (r *run) identity() Identity {
	id := Identity{Backend: r.Backend.Name, Device: r.device, FlagGemsVendor: r.Backend.Vendor, VisibilityEnv: map[string]string{}}
	if ns := r.Backend.TorchNamespace; ns != "" && ns != "cpu" {
		id.TimerAPI = "torch." + ns + ".Event"
	} else {
		id.TimerAPI = "time.perf_counter"
	}
	for _, v := range r.Backend.Visibility {
		if value, ok := env.Lookup(r.childEnv, v.Name); ok {
			id.VisibilityEnv[v.Name] = value
		}
	}
	mask := r.choice.Mask
	if mask != nil && len(mask) == 0 {
		return id // no device, so none has a name
	}
	devices, _ := r.devices()
	for _, d := range devices {
		if mask == nil || mask[0] == d.Index || mask[0] == d.UUID {
			id.DeviceName, id.DeviceArch = d.Name, d.Arch
			break
		}
	}
	return id
}
