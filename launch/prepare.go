package launch

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/flagos-ai/zlexec/env"
	"github.com/flagos-ai/zlexec/launch/backend"
)

// prepare settles all that must be right before the command may start.
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
