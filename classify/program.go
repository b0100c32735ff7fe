package classify

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// kind says what the scanner does with a line that has one of an entry's texts.
type kind int

const (
	marker  kind = iota
	ignored      // gated only to be explained
	seen         // changes the class of another rule
	pytest       // structure of a pytest report
	foreign      // another vendor's module
)

// entry is a rule made ready for matching, or a text the scanner itself needs.
type entry struct {
	kind  kind
	rule  *Rule
	texts [][]byte // lower case
	names [][]byte // lower case identifier endings
	re    *regexp.Regexp
}

// program is a set of rules made ready for the search.
type program struct {
	vendors []string
	entries []entry
	ignores []int // entries whose rule ignores text
	lines   []int // entries whose rule ignores lines
	gates   *gates
}

// pytestTexts are found in the lines that structure a pytest report: headings of
// failures, of tracebacks' parts and of sections. The short ones, which cost speed,
// are needed only to name tests.
var (
	pytestTexts = []string{"________", "_ _ _ _ ", "========", "- captured std", "- captured log"}
	pytestNames = []string{"::test", "_ test", "] linux -- python"}
)

// compile makes rules ready. Texts are looked for in the given order; the first
// of equal class wins a line.
func compile(c Config) (*program, error) {
	var rules []Rule
	if c.Rules != nil {
		var err error
		if rules, err = c.Rules(); err != nil {
			return nil, fmt.Errorf("load markers: %w", err)
		}
	}
	p := &program{}
	if c.Vendors != nil {
		p.vendors = c.Vendors()
	}
	rules = append(append([]Rule(nil), c.Extra...), rules...)
	for i := range rules {
		p.add(&rules[i])
	}
	structure := pytestTexts
	if c.Pytest {
		structure = append(pytestNames[:len(pytestNames):len(pytestNames)], structure...)
	}
	p.entries = append(p.entries, entry{kind: pytest, texts: byteTexts(structure)})
	p.entries = append(p.entries, entry{kind: foreign, texts: byteTexts(foreignTexts(p.vendors))})
	var texts []string
	var refs []int
	for i, e := range p.entries {
		if e.kind == ignored && (!c.Explain || e.rule.Ignore != ignoreText) { // others matter only beside a marker
			continue
		}
		for _, t := range append(append([][]byte(nil), e.texts...), e.names...) {
			texts, refs = append(texts, string(t)), append(refs, i)
		}
	}
	p.gates = newGates(texts, refs)
	return p, nil
}

func (p *program) add(r *Rule) {
	e := entry{rule: r, texts: byteTexts(r.Text), names: byteTexts(r.Name)}
	switch r.Ignore {
	case ignoreText, ignoreRest:
		e.kind = ignored
		p.ignores = append(p.ignores, len(p.entries))
	case ignoreLine:
		e.kind = ignored
		p.lines = append(p.lines, len(p.entries))
	}
	p.entries = append(p.entries, e)
	if len(r.Seen) > 0 {
		p.entries = append(p.entries, entry{kind: seen, rule: r, texts: byteTexts(r.Seen)})
	}
}

func byteTexts(list []string) [][]byte {
	out := make([][]byte, len(list))
	for i, t := range list {
		out[i] = []byte(strings.ToLower(t))
	}
	return out
}

// touched appends to list the entries that have a window in low, which must be
// readable slack bytes beyond its end. Each entry is listed once.
func (p *program) touched(list []int, low []byte) []int {
	list = list[:0]
	padded := low[:len(low)+slack]
	for i := 0; ; i++ {
		var refs []int
		if i, refs = p.gates.next(padded, i, len(low)); i < 0 {
			slices.Sort(list) // the order of the rules
			return list
		}
		for _, r := range refs {
			if !slices.Contains(list, r) {
				list = append(list, r)
			}
		}
	}
}

// matches returns where in low the marker e names a device error, -1 if nowhere.
// start is low without its prefixes.
func (e *entry) matches(low, start []byte) int {
	at := e.wording(low, start)
	if at < 0 || !e.regexp(low) {
		return -1
	}
	for _, u := range e.rule.Unless {
		if bytes.Contains(low, bytes.ToLower([]byte(u))) {
			return -1
		}
	}
	return at
}

// regexp tells whether the rule's expression, if any, matches.
func (e *entry) regexp(b []byte) bool {
	if e.rule.Match == "" {
		return true
	}
	if e.re == nil {
		e.re = regexp.MustCompile(e.rule.Match) // Rule.Check has parsed it
	}
	return e.re.Match(b)
}

// wording returns where one of the texts or names stands as evidence.
func (e *entry) wording(low, start []byte) int {
	for _, t := range e.texts {
		for at := find(low, t, 0); at >= 0; at = find(low, t, at+1) {
			if len(e.rule.Number) > 0 && !numbered(low, at+len(t), e.rule.Number) {
				continue
			}
			if e.rule.Anywhere || e.placed(low, t, at) {
				return at
			}
		}
	}
	for _, n := range e.names {
		for at := find(low, n, 0); at >= 0; at = find(low, n, at+1) {
			if named(low, start, at, at+len(n)) {
				return at
			}
		}
	}
	return -1
}

func find(b, t []byte, from int) int {
	if from > len(b) {
		return -1
	}
	if i := bytes.Index(b[from:], t); i >= 0 {
		return from + i
	}
	return -1
}

// placed tells whether the text at low[at:] stands where it is evidence.
func (e *entry) placed(low, t []byte, at int) bool {
	end := at + len(t)
	if len(e.rule.After) == 0 && (e.rule.Match != "" || len(e.rule.Number) > 0) {
		return true // the expression or the number says where
	}
	if identifier(t) && (at > 0 && isWord(low[at-1]) || end < len(low) && isWord(low[end]) && t[len(t)-1] != '_') {
		return false
	}
	if len(e.rule.After) > 0 {
		return led(low, at, e.rule.After)
	}
	if at > 0 && (low[at-1] == '"' || low[at-1] == '\'' || low[at-1] == '`') {
		return led(low, at, []string{"lead"})
	}
	return true
}

func identifier(t []byte) bool {
	for _, c := range t {
		if !isWord(c) {
			return false
		}
	}
	return true
}

// cut finds the marker whose text a line cut by pytest ("...") begins to say: at
// least minCut bytes of it, and every text that begins so has the same class.
// Only lines with a node id are cut so; text is low without it.
func (p *program) cut(low, text []byte) int {
	const minCut = 10
	text = bytes.TrimRight(text, " ")
	tail := bytes.TrimSuffix(text, []byte("..."))
	if len(tail) == len(text) || !bytes.Contains(low, []byte("::")) {
		return -1
	}
	found := -1
	for i, e := range p.entries {
		if e.kind != marker {
			continue
		}
		for _, t := range e.texts {
			if !endsWithStart(tail, t, minCut) {
				continue
			}
			if found >= 0 && p.entries[found].rule.Class != e.rule.Class {
				return -1
			}
			if found < 0 {
				found = i
			}
		}
	}
	return found
}

// endsWithStart tells whether b ends with at least n bytes of t's beginning.
func endsWithStart(b, t []byte, n int) bool {
	for k := min(len(b), len(t)); k >= n; k-- {
		if bytes.HasSuffix(b, t[:k]) {
			return true
		}
	}
	return false
}
