// Package launch runs one command for a backend: it builds the environment,
// starts the command in this process's place, relays and looks at its output,
// takes readings before and after, and says how it ended.
package launch

import (
	"io"
	"os"
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
		return 0, lookup(o.Argv[0], r.childEnv, func(file string) error { return execute(file, o.Argv, r.childEnv) })
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
