package launch

import (
	"encoding/json"
	"fmt"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/flagos-ai/zlexec/classify"
	"github.com/flagos-ai/zlexec/env"
	"github.com/flagos-ai/zlexec/sample"
)

// Record is one line of the --record file. Keys may be added, and never change
// their meaning; null means unknown.
type Record struct {
	Schema    string       `json:"schema"`
	StartedAt time.Time    `json:"started_at"`
	DurationS float64      `json:"duration_s"`
	Hostname  string       `json:"hostname"`
	Cwd       *string      `json:"cwd"`
	Argv      []string     `json:"argv"`
	Backend   string       `json:"backend"`
	Vendor    *string      `json:"vendor"`
	Device    *string      `json:"device"`
	Mask      *string      `json:"mask"` // what the visibility variable says; null: all devices are visible
	Op        *string      `json:"op"`
	Env       []env.Change `json:"env"`

	Exit     ExitStatus `json:"exit"`
	ExitCode int        `json:"exit_code"`

	Class          classify.Class      `json:"class"`
	Root           *classify.Hit       `json:"root"`
	Otherwise      *classify.Hit       `json:"otherwise"` // what would have decided without the root
	Counts         classify.Counts     `json:"counts"`
	ForeignVendors []string            `json:"foreign_vendors"`
	Pytest         *classify.Pytest    `json:"pytest,omitempty"`
	Telemetry      map[string]Snapshot `json:"telemetry"`
	Usage          Usage               `json:"usage"`
	Scheduler      *Scheduler          `json:"scheduler"`
	Attempts       int                 `json:"attempts"`
	Earlier        []Attempt           `json:"earlier_attempts,omitempty"`
}

// Snapshot is the readings of one moment.
type Snapshot = sample.Snapshot

// ExitStatus is how the command itself ended.
type ExitStatus struct {
	Code       *int    `json:"code"`   // null when a signal ended it
	Signal     *string `json:"signal"` // "SIGSEGV"; null when it exited
	CoreDumped bool    `json:"core_dumped"`
	TimedOut   bool    `json:"timed_out"`
}

// Usage is what the command and all its reaped descendants used.
type Usage struct {
	UserS     float64 `json:"user_s"`
	SystemS   float64 `json:"system_s"`
	MaxRSSMiB int64   `json:"max_rss_mib"`
}

// Attempt is an earlier start of the command, before --retry-poisoned.
type Attempt struct {
	DurationS float64        `json:"duration_s"`
	Exit      ExitStatus     `json:"exit"`
	Class     classify.Class `json:"class"`
	Root      *classify.Hit  `json:"root"`
}

func exitStatus(o outcome) ExitStatus {
	e := ExitStatus{CoreDumped: o.status.CoreDump() && o.status.Signaled(), TimedOut: o.timedOut}
	switch {
	case o.stuck: // it did not end: neither is known
	case o.status.Signaled():
		e.Signal = new(signalName(o.status.Signal()))
	default:
		e.Code = new(o.status.ExitStatus())
	}
	return e
}

func signalName(sig syscall.Signal) string {
	if name := unix.SignalName(sig); name != "" {
		return name
	}
	return fmt.Sprintf("SIGRTMIN+%d", int(sig)-34) // 34 is the C library's SIGRTMIN
}

func usage(o outcome) Usage {
	return Usage{
		UserS:     seconds(time.Duration(o.usage.Utime.Nano())),
		SystemS:   seconds(time.Duration(o.usage.Stime.Nano())),
		MaxRSSMiB: o.usage.Maxrss >> 10, // kilobytes on Linux
	}
}

// seconds rounds to milliseconds: what is beyond them differs at every run.
func seconds(d time.Duration) float64 { return d.Round(time.Millisecond).Seconds() }

// append writes the record as one line to the file that the pattern names.
func (r *Record) append(pattern string) error {
	path, err := ExpandPath(pattern, r.Scheduler, r.Hostname, os.Getpid())
	if err != nil {
		return err
	}
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return AppendLine(path, line)
}

// optional returns nil for an empty text, which means unknown.
func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
