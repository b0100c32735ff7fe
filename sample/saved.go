package sample

import (
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// savedMark begins the first line of a recording; the command that printed the
// rest follows. It says how the columns are called where the output does not.
const savedMark = "# $ "

// Parse reads a saved output as the one of tools would that finds the most values
// in it: which tool printed it is known only when the recording says so.
func Parse(tools []Tool, data []byte, at time.Time) Snapshot {
	best := Snapshot{State: None}
	detail, most := "this backend asks no tool that prints this", -1
	argv, code, data := recording(data)
	for _, t := range withExtras(tools) {
		if len(t.Argv) == 0 {
			continue
		}
		if argv != nil {
			if filepath.Base(argv[0]) != filepath.Base(t.Argv[0]) {
				continue
			}
			t.Argv = argv
		}
		devices, state, why := t.judge(outcome{stdout: data, code: code})
		if state == OK {
			devices, state, why = keep(devices, nil, nil)
		}
		n := known(devices)
		if len(devices) > 0 && n > most || most < 0 && rank(state) > rank(best.State) {
			best.Devices, best.State, detail = devices, state, why
		}
		if len(devices) > 0 {
			most = max(most, n)
		}
	}
	best.At = at.UTC()
	if best.Devices == nil {
		best.Devices = []Reading{}
	}
	if detail != "" {
		best.Detail = &detail
	}
	return best
}

func withExtras(tools []Tool) (all []Tool) {
	for _, t := range tools {
		all = append(append(all, t), t.Extra...)
	}
	return all
}

// known counts the values that devices have.
func known(devices []Reading) (n int) {
	for _, d := range devices {
		for _, v := range []*float64{d.SMClockMHz, d.MemClockMHz, d.TempC, d.PowerW, d.UtilPct} {
			if v != nil {
				n++
			}
		}
		if d.Index != nil {
			n++
		}
	}
	return n
}

// recording separates a recording's own lines from the output: savedMark, then
// notes that begin with ##, of which "## exit N" is the tool's exit code.
func recording(data []byte) (argv []string, code int, output []byte) {
	for first := true; ; first = false {
		line, rest, _ := strings.Cut(string(data), "\n")
		command, marked := strings.CutPrefix(line, savedMark)
		switch {
		case first && marked:
			if words := strings.Fields(command); len(words) > 0 {
				argv = words
			}
		case first || !strings.HasPrefix(line, "##"):
			return argv, code, data
		}
		if n, ok := strings.CutPrefix(line, "## exit "); ok {
			code, _ = strconv.Atoi(strings.TrimSpace(n))
		}
		data = []byte(rest)
	}
}
