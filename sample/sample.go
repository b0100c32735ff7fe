// Package sample takes one snapshot of the devices and the host: it runs a vendor
// tool within a deadline and reads what it printed. It knows formats, not vendors:
// which tool is run and how its output is read is data (Tool), which the backend
// files hold. A value that a tool does not tell is nil, never 0.
package sample

import (
	"cmp"
	"regexp"
	"strings"
	"time"
)

// Reading is one device's values at one moment; nil is unknown.
type Reading struct {
	// Index is the device in the numbering of the backend's visibility variable
	// when Take could map it, else as the tool prints it.
	Index *string `json:"index"`
	UUID  *string `json:"uuid"`
	Name  *string `json:"name"`
	// SMClockMHz and MemClockMHz are current clocks, never rated or maximum ones.
	SMClockMHz  *float64 `json:"sm_clock_mhz"`
	MemClockMHz *float64 `json:"mem_clock_mhz"`
	// TempC is the core's temperature, in degrees Celsius.
	TempC *float64 `json:"temp_c"`
	// PowerW is the draw, never a cap; where a tool tells it for a whole card, the
	// card's first chip carries it.
	PowerW *float64 `json:"power_w"`
	// UtilPct is compute utilisation, never that of memory.
	UtilPct *float64 `json:"util_pct"`
	// Arch is the architecture where a listing tells it (identity, not a reading).
	Arch *string `json:"-"`

	card, chip string // the tool's own numbering, for Map and Extra
	lost       bool   // a cell said that the device is gone
}

// Host is what the machine itself did; nil is unknown.
type Host struct {
	Load1           *float64 `json:"load1"`
	MemAvailableMiB *uint64  `json:"mem_available_mib"`
	// CPUUtilPct covers the time since Request.Since, so it is nil without one.
	CPUUtilPct *float64 `json:"cpu_util_pct"`

	times *cpuTimes
}

// The states of a Snapshot.
const (
	OK        = "ok"        // Devices holds what the tool told
	None      = "none"      // the backend has no tool, or none is installed here
	Failed    = "failed"    // the tool ended with an error, or printed nothing
	TimedOut  = "timeout"   // the tool did not end before the deadline
	Malformed = "malformed" // the output is not what this tool prints
	Lost      = "lost"      // the tool says that a device is gone or needs a reset
)

// Snapshot is one look at the devices and the host.
type Snapshot struct {
	At      time.Time `json:"at"`
	TookMS  int64     `json:"took_ms"`
	State   string    `json:"state"`
	Detail  *string   `json:"detail"` // why State is not ok, or what an ok one lacks
	Devices []Reading `json:"devices"`
	Host    *Host     `json:"host"`
}

// Request says what Take reads and for how long.
type Request struct {
	// Tools are tried in order until one gives readings.
	Tools []Tool
	// Devices are the entries of the mask; nil means all devices.
	Devices []string
	// Timeout bounds all tools together.
	Timeout time.Duration
	// Env is the tools' environment; Take sets LC_ALL=C in it. Nil: zlexec's own.
	Env []string
	// Since is the snapshot before this one, from which utilisation of the host's
	// processors is counted.
	Since *Snapshot
	// NoHost leaves Host nil, for listings.
	NoHost bool
	// Root is put before sysfs paths; empty is the real root.
	Root string
}

// stopGrace is kept back from the deadline so that a killed tool can be reaped
// before it: a process in uninterruptible sleep is abandoned after that.
const stopGrace = 20 * time.Millisecond

// Take runs the tools of r in order until one gives readings, and reads the host.
// It returns before r.Timeout has passed, whatever the tools do, and leaves no
// process behind but one that SIGKILL cannot end.
func Take(r Request) Snapshot {
	start := time.Now()
	s := Snapshot{At: start.UTC(), State: None, Devices: []Reading{}}
	if !r.NoHost {
		s.Host = readHost(r.Since)
	}
	deadline := start.Add(r.Timeout - min(stopGrace, r.Timeout/10))
	var missing []string // of several tools that are not here, each is named
	detail := "no vendor tool is known for this backend"
	for _, t := range r.Tools {
		if r.Devices != nil && len(r.Devices) == 0 {
			detail = "no device is visible"
			break
		}
		devices, state, why := t.take(r, deadline, s.Host)
		if state == None {
			missing = append(missing, why)
		}
		if done := state == OK || state == Lost || state == TimedOut; done || rank(state) > rank(s.State) {
			s.Devices, s.State, detail = devices, state, why
			if done {
				break
			}
		}
	}
	if s.State == None && len(missing) > 0 {
		detail = strings.Join(missing, "; ")
	}
	if detail != "" {
		s.Detail = &detail
	}
	if s.Devices == nil {
		s.Devices = []Reading{}
	}
	s.TookMS = time.Since(start).Milliseconds()
	return s
}

// rank orders the states of tools that all gave nothing: one that is there and
// fails tells more than one that is missing.
func rank(state string) int {
	switch state {
	case None:
		return 0
	case Failed:
		return 1
	}
	return 2
}

// take asks one tool. why is empty when all is well.
func (t Tool) take(r Request, deadline time.Time, host *Host) (devices []Reading, state, why string) {
	switch {
	case t.has("host"):
		return []Reading{readCPU(r.Root, host)}, OK, ""
	case t.has("sysfs"):
		devices = t.readSysfs(r.Root)
		if len(devices) == 0 {
			return nil, None, "no device of this vendor under /sys/class/drm"
		}
		return keep(devices, r.Devices, nil)
	}
	wanted := r.Devices
	var places []place
	var note string
	if t.Map.applies(wanted) {
		if places, state, note = t.Map.read(r, deadline, t.Paths); state != OK && (len(wanted) > 0 || state == TimedOut) {
			return nil, state, note
		}
		if note != "" {
			note = "indices are the tool's own: " + note
		}
		wanted = cards(places, wanted)
	}
	argv := t.arguments(wanted)
	if argv == nil {
		return nil, None, t.Argv[0] + " is asked only for chosen devices"
	}
	out := run(argv, t.Paths, r.Env, deadline)
	devices, state, why = t.judge(out)
	if state != OK {
		return devices, state, why
	}
	if devices, state, why = keep(devices, r.Devices, places); state != OK {
		return devices, state, why
	}
	t.addExtras(devices, r.Env, deadline)
	return devices, OK, cmp.Or(note, why)
}

// judge turns what a run gave into readings or a state and its reason.
func (t Tool) judge(out outcome) (devices []Reading, state, why string) {
	text := string(out.stdout)
	switch {
	case out.missing:
		return nil, None, out.reason
	case out.timedOut:
		return nil, TimedOut, out.reason
	case out.reason != "":
		return nil, Failed, out.reason
	}
	lost := t.lostIn(text + "\n" + string(out.stderr))
	for _, code := range t.LostExit {
		lost = lost || out.code == code
	}
	if out.code != 0 || strings.TrimSpace(text) == "" {
		why := out.summary(t.Argv[0])
		if lost {
			return nil, Lost, why
		}
		return nil, Failed, why
	}
	devices, err := ParseOutput(t, out.stdout)
	if err != nil {
		if lost {
			return nil, Lost, err.Error()
		}
		return nil, Malformed, err.Error()
	}
	return devices, OK, ""
}

// lostIn reports whether text says that a device is gone.
func (t Tool) lostIn(text string) bool {
	return t.Lost != "" && regexp.MustCompile(t.Lost).MatchString(text)
}
