package sample

import (
	"encoding/csv"
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
		if t.isDevice(r) && t.hasIndex(names) == t.hasIndex(r.keys) && len(r.keys) > 0 {
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
