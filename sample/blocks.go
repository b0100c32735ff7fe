package sample

import (
	"regexp"
	"strings"
)

// pair splits "Key : value" at the first colon.
func pair(line string) (key, value string, ok bool) {
	key, value, ok = strings.Cut(line, ":")
	return strings.TrimSpace(key), strings.TrimSpace(value), ok
}

// parseIndent reads blocks of indented "Key : value" lines. Start begins a device;
// the key of a value is its path, so that "Clocks" and "Max Clocks" stay apart.
func parseIndent(t Tool, text string) (rows []row) {
	if t.Start == "" {
		return nil
	}
	start := regexp.MustCompile(t.Start)
	var path []string
	var depths []int
	for line := range strings.Lines(text) {
		trimmed := strings.TrimSpace(line)
		if trimmed == "" {
			continue
		}
		depth := len(line) - len(strings.TrimLeft(line, " \t"))
		if m := start.FindStringSubmatch(strings.TrimRight(line, " \t\r\n")); m != nil {
			rows = append(rows, row{})
			rows[len(rows)-1].addGroups(start, m)
			path, depths = nil, nil
			continue
		}
		if len(rows) == 0 {
			continue
		}
		for len(depths) > 0 && depths[len(depths)-1] >= depth {
			path, depths = path[:len(path)-1], depths[:len(depths)-1]
		}
		key, value, ok := pair(trimmed)
		if ok && value != "" {
			rows[len(rows)-1].add(strings.Join(append(path[:len(path):len(path)], normal(key)), "."), value)
		}
		if len(path) < maxDepth {
			path, depths = append(path, normal(key)), append(depths, depth)
		}
	}
	return rows
}

// maxDepth bounds nesting; no tool comes near it.
const maxDepth = 64

// parseSections reads flat "Key : value" lines in which each chip of a card is a
// section: blank lines divide them, and so does a key that comes again (copies
// lose blank lines). The card's own keys stand in the first section, before or
// with those of a chip; the chip's number may stand first or last.
func parseSections(t Tool, text string) (rows []row) {
	card, ofCard := "", 0 // the card in force and where its rows begin
	bare := func() {      // a card of which nothing else is told is a device all the same
		if card != "" && len(rows) == ofCard {
			r := row{}
			r.add("card", card)
			rows = append(rows, r)
		}
	}
	for _, s := range sections(text) {
		own := t.text(s, "card", deviceIndex)
		if own != nil {
			bare()
			card, ofCard = *own, len(rows)
		}
		switch {
		case card == "":
		case t.text(s, "chip", deviceIndex) != nil || own != nil && t.measures(s):
			s.add("card", card)
			rows = append(rows, s)
		case own == nil:
			rows = t.spread(rows, ofCard, card, s)
		}
	}
	bare()
	return rows
}

// sections divides text at blank lines and at keys that come again.
func sections(text string) (all []row) {
	current := row{}
	end := func() {
		if len(current.keys) > 0 {
			all = append(all, current)
		}
		current = row{}
	}
	for line := range strings.Lines(text) {
		key, value, ok := pair(line)
		if strings.TrimSpace(line) == "" {
			end()
		}
		if !ok || key == "" {
			continue
		}
		if _, again := current.find(normal(key)); again {
			end()
		}
		current.add(key, value)
	}
	end()
	return all
}

// measures reports whether s holds a value of some kind.
func (t Tool) measures(s row) bool {
	return t.number(s, "util_pct", percent) != nil || t.number(s, "power_w", watts) != nil ||
		t.number(s, "temp_c", celsius) != nil || t.number(s, "sm_clock_mhz", megahertz) != nil ||
		t.number(s, "mem_clock_mhz", megahertz) != nil
}

// spread gives the value named by Spread, told for the whole card in part, to the
// first of the card's rows that has none.
func (t Tool) spread(rows []row, first int, card string, part row) []row {
	if t.Spread == "" {
		return rows
	}
	for _, k := range t.keys(t.Spread) {
		v, ok := part.find(normal(k))
		if !ok {
			continue
		}
		if len(rows) == first {
			r := row{}
			r.add("card", card)
			rows = append(rows, r)
		}
		for i := first; i < len(rows); i++ {
			if t.number(rows[i], t.Spread, watts) == nil {
				rows[i].add(t.Spread, v)
				return rows
			}
		}
		return rows
	}
	return rows
}
