package sample

import (
	"encoding/csv"
	"regexp"
	"strings"
)

// isHeader reports whether cells name the columns of a device table: the index's
// and at least one other, or any two where no index is asked for.
func (t Tool) isHeader(cells []string) bool {
	found := 0
	for _, field := range fieldNames {
		for _, k := range t.keys(field) {
			for _, c := range cells {
				if column(c) == normal(k) {
					found++
				}
			}
		}
	}
	return found >= 2 || found == 1 && len(cells) <= 2
}

// column is the key of a header cell: "power.draw [W]" is "power.draw".
func column(cell string) string {
	if at := strings.Index(cell, " ["); at > 0 && strings.HasSuffix(cell, "]") {
		cell = cell[:at]
	}
	return normal(cell)
}

// isDevice reports whether r can be a device's row: its index, if the table has
// that column, is one. Repeated headers, unit rows and notes are not.
func (t Tool) isDevice(r row) bool {
	for _, k := range t.keys("index") {
		if v, ok := r.find(normal(k)); ok {
			_, ok = deviceIndex(v)
			return ok
		}
	}
	return true
}

// hasIndex reports whether one of names is the index's.
func (t Tool) hasIndex(names []string) bool {
	for _, n := range names {
		if t.isIndexKey(n) {
			return true
		}
	}
	return false
}

// parseCSV reads lines of comma-separated cells, under a header or with the names
// that Argv or Headerless has.
func parseCSV(t Tool, text string) (rows []row) {
	var header []string
	for line := range strings.Lines(text) {
		cells := csvCells(line)
		if len(cells) > 1 && header == nil && t.isHeader(cells) {
			header = cells
			continue
		}
		names := header
		if names == nil {
			names = t.namesFor(len(cells))
		}
		if names == nil || len(cells) < len(names) {
			continue // a message between the rows
		}
		r := row{}
		for i, name := range names {
			if strings.HasPrefix(cells[i], "[") && !strings.HasSuffix(cells[i], "]") {
				break // an unquoted list: what follows has moved to the right
			}
			r.add(column(name), cells[i])
		}
		if t.isDevice(r) {
			rows = append(rows, r)
		}
	}
	return rows
}

func csvCells(line string) []string {
	if strings.TrimSpace(line) == "" {
		return nil
	}
	reader := csv.NewReader(strings.NewReader(line))
	reader.LazyQuotes, reader.TrimLeadingSpace = true, true
	cells, err := reader.Read()
	if err != nil {
		return nil
	}
	for i := range cells {
		cells[i] = strings.TrimSpace(cells[i])
	}
	return cells
}

// namesFor returns the first list of column names with n names.
func (t Tool) namesFor(n int) []string {
	for _, a := range append(t.Argv[:len(t.Argv):len(t.Argv)], t.Headerless...) {
		if _, list, ok := strings.Cut(a, "="); ok {
			a = list
		}
		if names := strings.Split(a, ","); n > 1 && len(names) == n && t.isHeader(names) {
			return names
		}
	}
	return nil
}

// span is a cell of a line and where it stands, in runes.
type span struct {
	text       string
	start, end int
}

// cellsOf splits a line at runs of two or more blanks, or at bars where it has
// them. A cell that ends with a comma goes on after the blanks.
func cellsOf(line string) (cells []span) {
	if strings.Contains(line, "|") {
		at := 0
		for _, c := range strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|") {
			cells = append(cells, span{strings.TrimSpace(c), at, at + len([]rune(c))})
			at += len([]rune(c)) + 1
		}
		return cells
	}
	runes := []rune(strings.TrimRight(strings.ReplaceAll(line, "\t", "  "), " \n"))
	for i := 0; i < len(runes); {
		if runes[i] == ' ' {
			i++
			continue
		}
		start := i
		for i < len(runes) && (runes[i] != ' ' || i+1 < len(runes) && runes[i+1] != ' ') {
			i++
		}
		cell := span{string(runes[start:i]), start, i}
		if n := len(cells); n > 0 && strings.HasSuffix(cells[n-1].text, ",") {
			cells[n-1] = span{cells[n-1].text + " " + cell.text, cells[n-1].start, i}
			continue
		}
		cells = append(cells, cell)
	}
	return cells
}

// parseColumns reads a table under a header line.
func parseColumns(t Tool, text string) (rows []row) {
	var header []span
	for line := range strings.Lines(text) {
		cells := cellsOf(line)
		if header == nil {
			if len(cells) > 1 && t.isHeader(texts(cells)) {
				header = cells
			}
			continue
		}
		r := rowUnder(header, cells)
		if len(r.keys) > 1 && t.isDevice(r) && (!t.hasIndex(texts(header)) || t.hasIndex(r.keys)) {
			rows = append(rows, r)
		}
	}
	return rows
}

func texts(cells []span) []string {
	s := make([]string, len(cells))
	for i, c := range cells {
		s[i] = c.text
	}
	return s
}

// rowUnder pairs cells with header by order when there are as many, else each cell
// with the column it stands under; a column that two cells claim is unknown.
func rowUnder(header, cells []span) row {
	r := row{}
	if len(cells) == len(header) {
		for i, h := range header {
			r.add(h.text, cells[i].text)
		}
		return r
	}
	claimed := make([]int, len(header))
	at := make([]int, len(cells))
	for i, c := range cells {
		best := 0
		for j, h := range header {
			if distance(h, c) < distance(header[best], c) {
				best = j
			}
		}
		at[i] = best
		claimed[best]++
	}
	for i, c := range cells {
		if claimed[at[i]] == 1 {
			r.add(header[at[i]].text, c.text)
		}
	}
	return r
}

// distance is how far apart two cells stand: columns are aligned left or right.
func distance(a, b span) int {
	return min(abs(a.start-b.start), abs(a.end-b.end))
}

func abs(n int) int { return max(n, -n) }

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
	key, value, index := pattern.SubexpIndex("key"), pattern.SubexpIndex("value"), pattern.SubexpIndex("index")
	for line := range strings.Lines(text) {
		m := pattern.FindStringSubmatch(strings.TrimRight(line, " \t\r\n"))
		switch {
		case m == nil || value < 0:
			continue
		case index < 0 && t.isIndexKey(m[key]):
			rows = append(rows, row{})
		case index > 0:
			if _, ok := at[m[index]]; !ok {
				at[m[index]] = len(rows)
				rows = append(rows, row{})
				rows[len(rows)-1].add("index", m[index])
			}
			rows[at[m[index]]].add(m[key], m[value])
			continue
		}
		if len(rows) > 0 {
			rows[len(rows)-1].add(m[key], m[value])
		}
	}
	return rows
}

func (t Tool) isIndexKey(key string) bool {
	for _, k := range t.keys("index") {
		if normal(k) == normal(key) {
			return true
		}
	}
	return false
}
