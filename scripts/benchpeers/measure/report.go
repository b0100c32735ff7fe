package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// result is what --json writes.
type result struct {
	Schema     string             `json:"schema"`
	At         string             `json:"at"`
	Short      bool               `json:"short"`
	Rounds     int                `json:"rounds"`
	Machine    map[string]string  `json:"machine"`
	Peers      map[string]*string `json:"peers"` // version, null for an absent one
	StartUp    []row              `json:"start_up"`
	Memory     []row              `json:"memory"`
	Relay      []row              `json:"relay"`
	LineDelay  []row              `json:"line_delay"`
	Concurrent []row              `json:"concurrent"`
	Targets    []target           `json:"targets"`
}

// row is one subject of a section; units are in the names of the values.
type row struct {
	Name   string            `json:"name"`
	Values map[string]spread `json:"values"`
}

// spread sums samples up. The percentiles are samples, not a model's; P99 of fewer
// than a hundred is the largest.
type spread struct {
	N      int     `json:"n"`
	Median float64 `json:"median"`
	P10    float64 `json:"p10"`
	P90    float64 `json:"p90"`
	P99    float64 `json:"p99"`
	Max    float64 `json:"max"`
}

func spreadOf(samples []float64) spread {
	s := slices.Sorted(slices.Values(samples))
	at := func(q float64) float64 { return s[min(int(q*float64(len(s))), len(s)-1)] }
	return spread{N: len(s), Median: at(0.5), P10: at(0.1), P90: at(0.9), P99: at(0.99), Max: s[len(s)-1]}
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// print writes the tables.
func (b *bench) print(w io.Writer) {
	out := bufio.NewWriter(w)
	defer out.Flush()
	fmt.Fprintf(out, "%s, %s processors, Linux %s, load %s before the run; %d rounds\n", b.Machine["cpu"], b.Machine["processors"], b.Machine["kernel"], b.Machine["load1"], b.rounds)
	for _, name := range slices.Sorted(maps.Keys(b.Peers)) {
		if b.Peers[name] == nil {
			fmt.Fprintf(out, "absent, not measured: %s\n", name)
		}
	}
	for _, section := range []struct {
		title string
		rows  []row
	}{
		{"Start-up of true", b.StartUp}, {"Peak resident memory", b.Memory}, {"Relay of stderr", b.Relay},
		{"Delay of a line", b.LineDelay}, {fmt.Sprintf("%d at once on two processors (sleep 0.3)", atOnce), b.Concurrent},
	} {
		fmt.Fprintf(out, "\n%-46s %-14s %10s %10s %10s %10s\n", section.title, "", "median", "p10", "p90", "p99")
		for _, r := range section.rows {
			for _, unit := range slices.Sorted(maps.Keys(r.Values)) {
				s := r.Values[unit]
				fmt.Fprintf(out, "%-46s %-14s %10.3f %10.3f %10.3f %10.3f\n", r.Name, unit, s.Median, s.P10, s.P90, s.P99)
			}
		}
	}
	fmt.Fprintf(out, "\n%-72s %10s   %-10s\n", "Target", "measured", "wanted")
	for _, t := range b.Targets {
		fmt.Fprintf(out, "%-72s %10.3f   %s %-8.4g %s\n", t.Name, t.Value, t.Relation, t.Limit, t.Verdict)
	}
}

func (b *bench) write(file string) error {
	b.Schema, b.At = "zlexec-bench/1", time.Now().UTC().Format(time.RFC3339)
	text, err := json.MarshalIndent(b.result, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(text, '\n'), 0o644)
}

// machine says what the figures were taken on.
func machine() map[string]string {
	m := map[string]string{"processors": fmt.Sprint(runtime.NumCPU()), "go": runtime.Version(), "arch": runtime.GOARCH, "cpu": "unknown processor", "load1": "unknown"}
	if info, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		if _, rest, found := strings.Cut(string(info), "model name"); found {
			line, _, _ := strings.Cut(rest, "\n")
			m["cpu"] = strings.Trim(line, "\t :")
		}
	}
	if load, err := os.ReadFile("/proc/loadavg"); err == nil {
		m["load1"], _, _ = strings.Cut(string(load), " ")
	}
	var u unix.Utsname
	if unix.Uname(&u) == nil {
		m["kernel"] = unix.ByteSliceToString(u.Release[:])
	}
	return m
}

// version is the first line of what --version prints; tini and the rest all know it.
func version(path string) *string {
	out, err := exec.Command(path, "--version").CombinedOutput()
	line, _, _ := strings.Cut(string(out), "\n")
	if err != nil || line == "" {
		line = "version not told"
	}
	return &line
}
