package backend

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// Auto returns the backend whose devices this machine has, under root.
func (f *Files) Auto(root string) (*Backend, error) {
	var heads []Head
	for _, n := range f.Names() {
		b, err := f.load(n)
		if err != nil {
			return nil, err
		}
		heads = append(heads, Head{Name: b.Name, Nodes: b.Nodes, PCI: b.PCI})
	}
	name, _, err := Auto(heads, root)
	if err != nil {
		return nil, err
	}
	return f.Load(name)
}

// Vendors returns the GEMS_VENDOR values of the embedded backends. The files are
// not decoded for that: the line stands alone in every head.
func Vendors() []string {
	var vendors []string
	for _, n := range (&Files{}).Names() {
		data, _ := embedded.ReadFile(n + ".toml")
		_, rest, found := strings.Cut(string(data), "\nvendor = \"")
		if v, _, closed := strings.Cut(rest, "\""); found && closed {
			vendors = append(vendors, v)
		}
	}
	return vendors
}

// Print lists the backends: a table, or JSON lines.
func (f *Files) Print(w io.Writer, asJSON bool) error {
	for _, n := range f.Names() {
		b, err := f.load(n)
		if err != nil {
			return err
		}
		var variables []string
		for _, v := range b.Visibility {
			if !v.ReadOnly && !v.Under {
				variables = append(variables, v.Name)
			}
		}
		if asJSON {
			err = json.NewEncoder(w).Encode(map[string]any{"name": b.Name, "title": b.Title, "aliases": b.Aliases, "vendor": b.Vendor,
				"visibility": variables, "capabilities": b.Capabilities})
		} else {
			_, err = fmt.Fprintf(w, "%-11s %-22s %-36s %s\n", b.Name, b.Title, strings.Join(b.Aliases, " "), strings.Join(variables, " "))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// unknown says which backends there are, and which one the user may have meant.
func (f *Files) unknown(name string) error {
	names := f.Names()
	nearest, best := "", 4 // further off than three edits is no typing error
	for _, n := range names {
		words := []string{n}
		if b, err := f.load(n); err == nil {
			words = append(words, b.Aliases...)
		}
		for _, w := range words {
			if d := distance(strings.ToLower(name), w); d < best && d < len(w) {
				nearest, best = w, d
			}
		}
	}
	hint := ""
	if nearest != "" {
		hint = fmt.Sprintf(", did you mean %s?", nearest)
	}
	return fmt.Errorf("--backend %s: unknown%s known are %s, and auto", name, hint, strings.Join(names, ", "))
}

// distance is the number of single-letter edits between two words.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			next := min(row[j]+1, row[j+1]+1, diagonal+cost)
			diagonal, row[j+1] = row[j+1], next
		}
	}
	return row[len(b)]
}
