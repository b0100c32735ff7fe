package sample

import "strings"

// span is a cell of a line and where it stands, in runes.
type span struct {
	text       string
	start, end int
}

// cellsOf splits a line at bars where it has them, else at runs of two or more
// blanks, or at every blank. A cell that ends with a comma goes on after the blanks.
func cellsOf(line string, everyBlank bool) (cells []span) {
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
		for i < len(runes) && (runes[i] != ' ' || !everyBlank && i+1 < len(runes) && runes[i+1] != ' ') {
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

// parseColumns reads a table under a header line that names the index.
func parseColumns(t Tool, text string) (rows []row) {
	var header []span
	hashed := false // nvidia-smi dmon: a # before the header, and no blanks in cells
	for line := range strings.Lines(text) {
		cells := cellsOf(line, hashed)
		if header == nil {
			title, found := strings.CutPrefix(strings.TrimSpace(line), "# ")
			if cells := cellsOf(title, found); t.isHeader(texts(cells)) && t.hasIndex(texts(cells)) {
				header, hashed = cells, found
			}
			continue
		}
		if len(cells) != len(header) && !strings.Contains(line, "|") {
			if words := cellsOf(line, true); len(words) == len(header) {
				cells = words // a wide value closed the gap to the next cell
			}
		}
		r := rowUnder(header, cells)
		if len(r.keys) > 1 && t.hasIndex(r.keys) && t.isDevice(r) {
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
