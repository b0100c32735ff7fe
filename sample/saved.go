package sample

import (
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
	detail, most := "no vendor tool is known for this backend", -1
	argv, data := recording(data)
	for _, t := range withExtras(tools) {
		if len(t.Argv) == 0 {
			continue
		}
		if argv != nil {
			t.Argv = argv
		}
		devices, state, why := t.judge(outcome{stdout: data})
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

// recording separates a recording's own lines (savedMark, then notes that begin
// with ##) from the output.
func recording(data []byte) (argv []string, output []byte) {
	for first := true; ; first = false {
		line, rest, _ := strings.Cut(string(data), "\n")
		command, marked := strings.CutPrefix(line, savedMark)
		switch {
		case first && marked:
			argv = strings.Fields(command)
		case first || !strings.HasPrefix(line, "##"):
			return argv, data
		}
		data = []byte(rest)
	}
}
