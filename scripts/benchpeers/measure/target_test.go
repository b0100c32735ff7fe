package main

import "testing"

// Only the short form fails, and only on a ratio that is missed by a factor of two.
func TestCode(t *testing.T) {
	for _, c := range []struct {
		name     string
		short    bool
		off, p99 float64
		code     int
		verdict  string
	}{
		{"met", true, 1.2, 1, 0, "PASS"},
		{"missed by noise", true, 2.4, 1, 0, "miss"},
		{"missed by far", true, 2.6, 1, 1, "miss, by more than a factor of two"},
		{"missed by far, long form", false, 2.6, 1, 0, "miss, by more than a factor of two"},
		{"a slow machine", true, 1.2, 50, 0, "PASS"},
	} {
		b := &bench{options: options{short: c.short}}
		b.StartUp = []row{timed("go-child", 1), timed("zlexec, telemetry off", c.off), timed("zlexec, telemetry on", c.off), timed("nvidia-smi (fake)", 1)}
		b.LineDelay = []row{{Name: "zlexec, scanning", Values: map[string]spread{"delay_ms": {P99: c.p99}}}}
		b.judge()
		if got := b.code(); got != c.code {
			t.Errorf("%s: code %d, want %d", c.name, got, c.code)
		}
		if got := b.Targets[0].Verdict; got != c.verdict {
			t.Errorf("%s: verdict %q, want %q", c.name, got, c.verdict)
		}
	}
}

func timed(name string, wall float64) row {
	return row{Name: name, Values: map[string]spread{"wall_ms": {Median: wall}}}
}

// A target at least as large as its limit is met from above.
func TestRatioUpward(t *testing.T) {
	b := &bench{}
	rows := []row{{Name: "cat", Values: map[string]spread{"mb_per_s": {Median: 100}}}, {Name: "z", Values: map[string]spread{"mb_per_s": {Median: 20}}}}
	b.ratio(rows, "mb_per_s", "z", "cat", ">=", 0.6)
	b.ratio(rows, "mb_per_s", "z", "absent", ">=", 0.6)
	if len(b.Targets) != 1 || b.Targets[0].Verdict != "miss, by more than a factor of two" {
		t.Errorf("targets: %+v", b.Targets)
	}
}

func TestSpread(t *testing.T) {
	var samples []float64
	for i := range 200 {
		samples = append(samples, float64(200-i))
	}
	if s := spreadOf(samples); s.Median != 101 || s.P10 != 21 || s.P90 != 181 || s.P99 != 199 || s.Max != 200 {
		t.Errorf("spread of 1..200: %+v", s)
	}
	if s := spreadOf([]float64{3}); s.Median != 3 || s.P99 != 3 {
		t.Errorf("spread of one: %+v", s)
	}
}
