package sample

import (
	"regexp"
	"slices"
	"strings"
)

// addGroups adds the named groups of pattern that took part in the match. A name
// may end in a digit: where a pattern has two places for a value, both need names.
func (r *row) addGroups(pattern *regexp.Regexp, match []string) {
	for i, name := range pattern.SubexpNames() {
		if name != "" && match[i] != "" {
			r.add(strings.TrimRight(name, "0123456789"), match[i])
		}
	}
}

// parseLines reads what the patterns of Line match; see Tool.Line.
func parseLines(t Tool, text string) (rows []row) {
	var patterns []*regexp.Regexp
	for _, p := range t.Line {
		patterns = append(patterns, regexp.MustCompile(p))
	}
	if len(patterns) > 0 && patterns[0].SubexpIndex("key") > 0 {
		return parsePairs(t, text, patterns[0])
	}
	next := 0
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, " \t\r\n")
		for i := range patterns {
			k := (next + i) % len(patterns) // the pattern that is due goes first
			m := patterns[k].FindStringSubmatch(line)
			if m == nil || k > 0 && next == 0 {
				continue
			}
			if k == 0 {
				rows = append(rows, row{})
			}
			rows[len(rows)-1].addGroups(patterns[k], m)
			next = (k + 1) % len(patterns)
			break
		}
	}
	return rows
}

// parsePairs gathers lines of index, key and value by index; without an index in
// the line, the index's own key begins a device.
func parsePairs(t Tool, text string, pattern *regexp.Regexp) (rows []row) {
	at := map[string]int{}
	for line := range strings.Lines(text) {
		m := pattern.FindStringSubmatch(strings.TrimRight(line, " \t\r\n"))
		if m == nil {
			continue
		}
		var found row
		found.addGroups(pattern, m)
		key, _ := found.find("key")
		value, _ := found.find("value")
		index, indexed := found.find("index")
		here, known := at[index]
		switch {
		case !indexed && t.isIndexKey(key), indexed && !known:
			here = len(rows)
			at[index] = here
			rows = append(rows, row{})
			if indexed {
				rows[here].add("index", index)
			}
		case !known:
			continue // before the first device
		}
		rows[here].add(key, value)
	}
	// lines of this form are also used for errors: a device has a key that is known
	return slices.DeleteFunc(rows, func(r row) bool { return !t.knows(r) })
}

// knows reports whether r has a key of some field but the index.
func (t Tool) knows(r row) bool {
	for field, keys := range t.Fields {
		for _, k := range keys {
			if _, ok := r.find(normal(k)); ok && field != "index" {
				return true
			}
		}
	}
	return false
}

func (t Tool) isIndexKey(key string) bool {
	for _, k := range t.keys("index") {
		if normal(k) == normal(key) {
			return true
		}
	}
	return false
}
