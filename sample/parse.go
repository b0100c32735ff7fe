package sample

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// row is what an output says of one device: keys as printed (see normal), in order.
type row struct{ keys, vals []string }

func (r *row) add(key, value string) {
	r.keys = append(r.keys, normal(key))
	r.vals = append(r.vals, strings.TrimSpace(value))
}

// find returns the first value of key, and whether there is one. A key that begins
// with *. is the last part of a path, one that ends with * the beginning of a key.
func (r *row) find(key string) (string, bool) {
	for i, k := range r.keys {
		switch {
		case k == key,
			strings.HasPrefix(key, "*.") && strings.HasSuffix(k, key[1:]),
			strings.HasSuffix(key, "*") && strings.HasPrefix(k, key[:len(key)-1]):
			return r.vals[i], true
		}
	}
	return "", false
}

// normal makes keys comparable: tools differ between versions in case, in the
// blanks around a key and in a colon after it.
func normal(key string) string {
	return strings.Trim(strings.ToLower(strings.Join(strings.Fields(key), " ")), " :#")
}

var errEmpty = errors.New("the tool printed nothing")

// parser turns a whole output into rows, none when the output has another format.
type parser func(t Tool, text string) []row

func parserOf(format string) parser {
	switch format {
	case "csv":
		return parseCSV
	case "json":
		return parseJSON
	case "xml":
		return parseXML
	case "columns":
		return parseColumns
	case "indent":
		return parseIndent
	case "sections":
		return parseSections
	case "lines":
		return parseLines
	}
	return nil
}

// ParseOutput reads what t printed. It returns at least one reading or an error
// that says why there is none; it never guesses.
func ParseOutput(t Tool, out []byte) ([]Reading, error) {
	text := clean(string(out))
	first := usefulLines(text)
	if first == "" {
		return nil, errEmpty
	}
	if t.Reject != "" && regexp.MustCompile(`(?m)`+t.Reject).MatchString(text) {
		return nil, fmt.Errorf("this is the output of another vendor's tool: %s", first)
	}
	if t.Recognise != "" && !regexp.MustCompile(`(?m)`+t.Recognise).MatchString(text) {
		return nil, fmt.Errorf("this is not what the tool prints: %s", first)
	}
	text = t.upToStop(text)
	for _, format := range t.Formats {
		parse := parserOf(format)
		if parse == nil {
			continue
		}
		if rows := parse(t, text); len(rows) > 0 {
			return t.readings(rows)
		}
	}
	return nil, fmt.Errorf("no device in the output: %s", first)
}

// upToStop cuts text at the line that Stop matches.
func (t Tool) upToStop(text string) string {
	if t.Stop == "" {
		return text
	}
	if at := regexp.MustCompile(`(?m)` + t.Stop).FindStringIndex(text); at != nil {
		return text[:at[0]]
	}
	return text
}

// readings picks the fields of t out of rows.
func (t Tool) readings(rows []row) ([]Reading, error) {
	var lost *regexp.Regexp
	if t.Lost != "" {
		lost = regexp.MustCompile(t.Lost)
	}
	readings := make([]Reading, 0, len(rows))
	for _, r := range rows {
		d := Reading{
			Index:       t.text(r, "index", deviceIndex),
			UUID:        t.text(r, "uuid", identifier),
			Name:        t.text(r, "name", identifier),
			Arch:        t.text(r, "arch", identifier),
			SMClockMHz:  t.number(r, "sm_clock_mhz", megahertz),
			MemClockMHz: t.number(r, "mem_clock_mhz", megahertz),
			TempC:       t.number(r, "temp_c", celsius),
			PowerW:      t.number(r, "power_w", watts),
			UtilPct:     t.number(r, "util_pct", percent),
		}
		if v := t.text(r, "card", deviceIndex); v != nil {
			d.card = *v
		}
		if v := t.text(r, "chip", deviceIndex); v != nil {
			d.chip = *v
		}
		for _, v := range r.vals {
			d.lost = d.lost || lost != nil && lost.MatchString(v)
		}
		readings = append(readings, d)
	}
	indexByCard(readings)
	return readings, unique(readings)
}

// indexByCard gives readings that have no index of their own that of their card,
// with the chip where the card has several.
func indexByCard(readings []Reading) {
	chips := map[string]int{}
	for _, d := range readings {
		chips[d.card]++
	}
	for i, d := range readings {
		if d.Index != nil || d.card == "" {
			continue
		}
		index := d.card
		if chips[d.card] > 1 && d.chip != "" {
			index += "/" + d.chip
		}
		readings[i].Index = &index
	}
}

// unique refuses an answer that names a device twice: rows of another table were
// taken for devices, so no row can be trusted.
func unique(readings []Reading) error {
	seen := map[string]bool{}
	for _, d := range readings {
		if d.Index == nil {
			continue
		}
		if seen[*d.Index] {
			return fmt.Errorf("device %s is in the output twice", *d.Index)
		}
		seen[*d.Index] = true
	}
	return nil
}

// keys are the names under which field may stand in a row.
func (t Tool) keys(field string) []string {
	if keys, ok := t.Fields[field]; ok {
		return append(keys[:len(keys):len(keys)], field)
	}
	return []string{field}
}

func (t Tool) text(r row, field string, read func(string) (string, bool)) *string {
	for _, k := range t.keys(field) {
		if v, ok := r.find(normal(k)); ok {
			if s, ok := read(v); ok {
				return &s
			}
		}
	}
	return nil
}

func (t Tool) number(r row, field string, u unit) *float64 {
	for _, k := range t.keys(field) {
		if v, ok := r.find(normal(k)); ok {
			if n, ok := u.read(v); ok {
				return &n
			}
		}
	}
	return nil
}

// clean removes what a terminal would not show: colour sequences, which rocm-smi
// prints into pipes too, carriage returns and a byte order mark.
func clean(text string) string {
	text = strings.TrimPrefix(strings.ReplaceAll(text, "\r\n", "\n"), "\ufeff")
	if !strings.Contains(text, "\x1b[") {
		return text
	}
	var b strings.Builder
	for {
		before, after, found := strings.Cut(text, "\x1b[")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		text = strings.TrimLeft(after, "0123456789;?")
		if text != "" {
			text = text[1:]
		}
	}
}

// usefulLines returns the first two lines of text that have a letter, for a reason
// of bounded length; tools put noise from a library before the error itself.
func usefulLines(text string) string {
	const most = 240 // one line of a terminal or two
	var lines []string
	for line := range strings.Lines(text) {
		if line = strings.Join(strings.Fields(line), " "); strings.ContainsFunc(line, isLetterOrDigit) {
			if lines = append(lines, line); len(lines) == 2 {
				break
			}
		}
	}
	s := strings.ToValidUTF8(strings.Join(lines, "; "), "?")
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}

func isLetterOrDigit(r rune) bool {
	return r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z'
}
