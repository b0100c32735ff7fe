package launch

import (
	"fmt"
	"os"
	"strings"

	"github.com/flagos-ai/zlexec/classify"
	"github.com/flagos-ai/zlexec/sample"
)

// advice says what to do about a class: one line each.
var advice = map[classify.Class]string{
	classify.Fatal:       "the kernel failed on the device: no number of this run counts",
	classify.Poisoned:    "a graph capture left the context unusable: run again with ZL_ENABLE_CUDAGRAPH=0, or with --retry-poisoned",
	classify.Recoverable: "a device error that does not prove the kernel wrong",
}

// closing says what came out, in lines on stderr.
func (r *Record) closing(v verdict) {
	if r.Class != classify.None {
		end := fmt.Sprintf("exit %d", v.code)
		switch {
		case v.signal != 0:
			end = "ended by " + signalName(v.signal)
		case !v.decided:
			end += " is the command's own"
		}
		say("%s (%s), %s: %s", colour(r.Class), r.Root.Marker, end, advice[r.Class])
		say("root: %s line %d: %s", r.Root.Stream, r.Root.LineNumber, r.Root.Line)
	}
	if r.Exit.TimedOut {
		say("--timeout ended the command after %.1f s", r.DurationS)
	}
	if p := r.Pytest; p != nil && p.Root != "" && p.AfterRoot > 0 {
		say("pytest: 1 root failure (%s), %d after it in a dead context: not evidence", p.Root, p.AfterRoot)
	}
	if len(r.ForeignVendors) > 0 {
		warn("code of another vendor was loaded (%s): a result measured with another vendor's kernel is suspect", strings.Join(r.ForeignVendors, ", "))
	}
	before, after := r.Telemetry["before"], r.Telemetry["after"]
	for i, d := range after.Devices {
		b := sample.Reading{}
		if i < len(before.Devices) {
			b = before.Devices[i]
		}
		say("%s", deviceLine(b, d))
	}
	if after.State == sample.Lost {
		warn("the device is lost (%s): nothing measured on it from here on is to be trusted", text(after.Detail))
	}
}

// deviceLine shows one device's readings: before → after, or only the latter
// where there is nothing before.
func deviceLine(b, a sample.Reading) string {
	words := []string{"device"}
	for _, s := range []*string{a.Index, a.Name} {
		if s != nil {
			words = append(words, *s)
		}
	}
	var parts []string
	for _, m := range []struct {
		unit          string
		before, after *float64
	}{
		{"MHz", b.SMClockMHz, a.SMClockMHz}, {"MHz memory", b.MemClockMHz, a.MemClockMHz},
		{"°C", b.TempC, a.TempC}, {"W", b.PowerW, a.PowerW}, {"%", b.UtilPct, a.UtilPct},
	} {
		switch {
		case m.before != nil:
			parts = append(parts, fmt.Sprintf("%s → %s %s", number(m.before), number(m.after), m.unit))
		case m.after != nil:
			parts = append(parts, number(m.after)+" "+m.unit)
		}
	}
	if parts == nil {
		parts = []string{"no readings"}
	}
	return strings.Join(words, " ") + ": " + strings.Join(parts, ", ")
}

func number(v *float64) string {
	if v == nil {
		return "?"
	}
	return strings.TrimSuffix(fmt.Sprintf("%.1f", *v), ".0")
}

func text(s *string) string {
	if s == nil {
		return "no detail"
	}
	return *s
}

// colour returns the class's name, coloured for a person at a terminal.
func colour(c classify.Class) string {
	code := map[classify.Class]string{classify.Fatal: "31", classify.Poisoned: "35", classify.Recoverable: "33"}[c]
	if _, off := os.LookupEnv("NO_COLOR"); off || !isTerminal(2) {
		return c.String()
	}
	return "\x1b[" + code + "m" + c.String() + "\x1b[0m"
}
