package main

import "strings"

// target is one of the promises: a value measured in this run against its limit.
type target struct {
	Name     string  `json:"name"`
	Value    float64 `json:"value"`
	Relation string  `json:"relation"` // "<=" or ">="
	Limit    float64 `json:"limit"`
	Ratio    bool    `json:"ratio"` // of two values of this run, or free of noise: decides in the short form
	Verdict  string  `json:"verdict"`
}

func median(rows []row, name, unit string) (float64, bool) {
	for _, r := range rows {
		if r.Name == name {
			return r.Values[unit].Median, true
		}
	}
	return 0, false
}

func (b *bench) target(name, relation string, value, limit float64, ratio bool) {
	t := target{Name: name, Value: value, Relation: relation, Limit: limit, Ratio: ratio, Verdict: "PASS"}
	excess := value / limit
	if relation == ">=" {
		excess = limit / value
	}
	switch {
	case excess > 2:
		t.Verdict = "miss, by more than a factor of two"
	case excess > 1:
		t.Verdict = "miss"
	}
	b.Targets = append(b.Targets, t)
}

// ratio adds a target about two rows; where the peer was absent there is none.
func (b *bench) ratio(rows []row, unit, name, peer, relation string, limit float64) {
	mine, ok := median(rows, name, unit)
	theirs, there := median(rows, peer, unit)
	if ok && there && theirs > 0 {
		b.target(name+" / "+peer+", "+unit, relation, mine/theirs, limit, true)
	}
}

// judge compares what was measured with the targets.
func (b *bench) judge() {
	b.ratio(b.StartUp, "wall_ms", "zlexec, telemetry off", "go-child", "<=", 1.25)
	b.ratio(b.StartUp, "wall_ms", "zlexec, telemetry off", "timeout", "<=", 2)
	b.ratio(b.StartUp, "wall_ms", "zlexec --exec", "go-exec", "<=", 1.1)
	for _, dest := range []string{" to /dev/null", " to a file"} {
		b.ratio(b.Relay, "mb_per_s", "zlexec, scan none"+dest, "cat"+dest, ">=", 0.9)
		b.ratio(b.Relay, "mb_per_s", "zlexec, scanning"+dest, "cat"+dest, ">=", 0.6)
	}
	for _, r := range b.LineDelay {
		if strings.HasPrefix(r.Name, "zlexec") {
			b.target("p99 delay of a line, ms", "<=", r.Values["delay_ms"].P99, 5, false)
		}
	}
	peak := 0.0
	for _, r := range b.Memory {
		peak = max(peak, r.Values["peak_mib"].Max)
	}
	b.target("peak resident memory, MiB, worst case", "<=", peak, 24, true)
	on, _ := median(b.StartUp, "zlexec, telemetry on", "wall_ms")
	off, _ := median(b.StartUp, "zlexec, telemetry off", "wall_ms")
	tool, _ := median(b.StartUp, "nvidia-smi (fake)", "wall_ms")
	b.target("a reading beyond the tool's own run time, ms", "<=", (on-off)/2-tool, 2, false)
}

// code is 1 in the short form when a ratio is missed by a factor of two: less is noise
// on a busy machine. The long form only reports.
func (b *bench) code() int {
	for _, t := range b.Targets {
		if b.short && t.Ratio && strings.Contains(t.Verdict, "factor of two") {
			return 1
		}
	}
	return 0
}
