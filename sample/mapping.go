package sample

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// place is a device in the mask's numbering and in the tool's own.
type place struct{ index, uuid, card, chip string }

// named reports whether a mask's entry means the place.
func (p place) named(entry string) bool {
	return entry != "" && (p.index == entry || p.uuid == entry)
}

// applies reports whether the mapping is needed for a mask.
func (m *Map) applies(devices []string) bool {
	if m == nil || m.When == "" {
		return m != nil
	}
	when := regexp.MustCompile(`^(?:` + m.When + `)$`)
	for _, d := range devices {
		if when.MatchString(d) {
			return true
		}
	}
	return false
}

// read runs the listing that tells both numberings.
func (m *Map) read(r Request, deadline time.Time, dirs []string) (places []place, state, why string) {
	out := run(m.Argv, dirs, r.Env, deadline)
	if _, state, why = (Tool{Argv: m.Argv}).judge(out); state != Malformed {
		return nil, state, why // without a format every answer counts as malformed
	}
	if places = m.parse(clean(string(out.stdout))); len(places) == 0 {
		return nil, Malformed, fmt.Sprintf("%s: no device in the output: %s", strings.Join(m.Argv, " "), usefulLines(string(out.stdout)))
	}
	return places, OK, ""
}

// parse gives a place for every line that tells an index or a UUID.
func (m *Map) parse(text string) (places []place) {
	var now place
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, " \t\r\n")
		for _, p := range m.Line {
			pattern := regexp.MustCompile(p)
			match := pattern.FindStringSubmatch(line)
			if match == nil {
				continue
			}
			now.index, now.uuid = "", ""
			for i, name := range pattern.SubexpNames() {
				switch name {
				case "index":
					now.index = match[i]
				case "uuid":
					now.uuid = match[i]
				case "card":
					now.card = match[i]
				case "chip":
					now.chip = match[i]
				}
			}
			if now.index != "" || now.uuid != "" {
				places = append(places, now)
			}
			break
		}
	}
	return places
}

// cards returns the tool's numbers for the entries of a mask, each once; an entry
// that is not listed stands for itself.
func cards(places []place, devices []string) (all []string) {
	seen := map[string]bool{}
	for _, d := range devices {
		card := d
		for _, p := range places {
			if p.named(d) {
				card = p.card
				break
			}
		}
		if !seen[card] {
			seen[card] = true
			all = append(all, card)
		}
	}
	return all
}

// keep returns the readings of the mask's devices, in the mask's numbering, in the
// order of the tool. places is nil where the numberings are the same. why also tells
// of entries without a reading.
func keep(all []Reading, devices []string, places []place) (kept []Reading, state, why string) {
	told := map[string]bool{}
	for _, d := range all {
		names := []string{}
		mapped := false
		for _, p := range places {
			same := d.card == p.card && (p.chip == "" || d.chip == p.chip) || d.card == "" && is(d.Index, p.card)
			if !same {
				continue
			}
			if mapped = true; p.index != "" {
				d.Index = &p.index
			}
			names = append(names, p.index, p.uuid)
		}
		mine := devices == nil
		for _, e := range devices {
			if d.is(e, names) {
				mine, told[e] = true, true
			}
		}
		if mine && (len(places) == 0 || mapped) {
			kept = append(kept, d)
		}
	}
	if len(kept) == 0 && len(all) > 0 && len(devices) > 0 {
		return nil, Failed, fmt.Sprintf("the tool tells of %s, not of %s", indices(all), strings.Join(devices, ","))
	}
	for _, d := range kept {
		if d.lost {
			return kept, Lost, "the tool says that device " + indices([]Reading{d}) + " is lost or needs a reset"
		}
	}
	for _, e := range devices {
		if !told[e] {
			return kept, OK, fmt.Sprintf("the tool tells of %s, not of %s", indices(all), e)
		}
	}
	return kept, OK, ""
}

// is reports whether a mask's entry means d, which also has names.
func (d Reading) is(entry string, names []string) bool {
	return is(d.Index, entry) || sameUUID(d.UUID, entry) || entry != "" && slices.Contains(names, entry)
}

func is(s *string, want string) bool { return s != nil && *s == want }

// sameUUID compares as the runtimes do: CUDA and HIP take a unique beginning, and
// HIP writes GPU- where rocm-smi writes 0x.
func sameUUID(uuid *string, entry string) bool {
	if uuid == nil || entry == "" || strings.Trim(entry, "0123456789") == "" {
		return false
	}
	bare := func(s string) string {
		s = strings.ToLower(s)
		return strings.TrimPrefix(strings.TrimPrefix(s, "gpu-"), "0x")
	}
	e := bare(entry)
	return e != "" && strings.HasPrefix(bare(*uuid), e)
}

// indices lists readings for a message.
func indices(all []Reading) string {
	var s []string
	for _, d := range all {
		switch {
		case d.Index != nil:
			s = append(s, *d.Index)
		case d.UUID != nil:
			s = append(s, *d.UUID)
		}
	}
	if len(s) == 0 {
		return "devices without an index"
	}
	return strings.Join(s, ",")
}

// addExtras asks the further questions of Extra, once per card and all at once,
// and fills values that are still unknown. They are a bonus: one that fails changes
// nothing.
func (t Tool) addExtras(devices []Reading, env []string, deadline time.Time) {
	const most = 2 // cards: a run is pinned to few, and each question costs a tool's run
	var questions []Tool
	seen := []string{""}
	for _, d := range devices {
		if slices.Contains(seen, d.card) {
			continue
		}
		seen = append(seen, d.card)
		for _, extra := range t.Extra {
			extra.Argv = slices.Clone(extra.Argv)
			for i, a := range extra.Argv {
				extra.Argv[i] = strings.ReplaceAll(a, "{card}", d.card)
			}
			questions = append(questions, extra)
		}
	}
	if len(seen) > 1+most {
		return
	}
	answers := make([][]Reading, len(questions))
	var asking sync.WaitGroup
	for i, q := range questions {
		asking.Go(func() { answers[i], _, _ = q.judge(run(q.Argv, t.Paths, env, deadline)) })
	}
	asking.Wait()
	for _, more := range answers {
		for i := range devices {
			devices[i].fill(more)
		}
	}
}

// fill takes over what d lacks from the reading of the same chip.
func (d *Reading) fill(more []Reading) {
	for _, m := range more {
		if m.card != d.card || m.chip != d.chip && m.chip != "" {
			continue
		}
		for _, f := range [][2]**float64{{&d.SMClockMHz, &m.SMClockMHz}, {&d.MemClockMHz, &m.MemClockMHz},
			{&d.TempC, &m.TempC}, {&d.PowerW, &m.PowerW}, {&d.UtilPct, &m.UtilPct}} {
			if *f[0] == nil {
				*f[0] = *f[1]
			}
		}
	}
}
