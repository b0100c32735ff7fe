package classify

import (
	"bytes"
	"strconv"
	"strings"
)

// Pytest is what a pytest report says about the root.
type Pytest struct {
	// Root is the node id of the test whose failure carries the root, "" if the
	// root stands in no test's report; the bare test name if no node id was printed.
	Root string `json:"root"`
	// Failed counts failed tests and errors in fixtures.
	Failed int `json:"failed"`
	// AfterRoot counts those that came after the root in the same process.
	AfterRoot int `json:"after_root"`
}

const (
	// maxTests bounds how many failing tests are remembered, maxTestName each name.
	maxTests    = 8192
	maxTestName = 240
)

// section is the part of a pytest report that a stream is in.
type section int

const (
	noSection section = iota
	errorsSection
	failuresSection
	summarySection
)

// report follows the pytest report in one stream.
type report struct {
	section  section
	inSource bool
	blocks   []block  // one per heading below FAILURES and ERRORS
	summary  []string // node ids of the short summary
	live     []block  // node ids of failures as they happened (pytest -v)
	running  string   // the node id printed last without an outcome
	line     string   // the node id in the line at hand, "" without one
	failed   int      // what the last line says, 0 if it has not come
}

// block is one failure's part of the report.
type block struct {
	name   string
	worker string // xdist's, "" without it
	errors bool   // in a fixture
	class  Class  // highest of its lines
}

// place is where a hit stands in a report.
type place struct {
	report *report
	block  int // index, -1 outside
	node   string
}

// place returns where a hit in the line at hand stands.
func (r *report) place() place {
	p := place{report: r, block: -1, node: r.line}
	if r.section == failuresSection || r.section == errorsSection {
		p.block = len(r.blocks) - 1
	}
	if p.node == "" && r.section == noSection {
		p.node = r.running
	}
	return p
}

// hit notes the class of a line of the block at hand.
func (r *report) hit(c Class) {
	if n := len(r.blocks); n > 0 && (r.section == failuresSection || r.section == errorsSection) {
		r.blocks[n-1].class = max(r.blocks[n-1].class, c)
	}
}

// structure reads a line that may be a heading, a node id or the last line. low
// is raw in lower case.
func (r *report) structure(raw, low []byte, names bool) {
	r.line = ""
	raw = bytes.TrimRight(raw, " ")
	switch {
	case bytes.HasPrefix(raw, []byte("===")):
		r.ruler(raw)
	case bytes.HasPrefix(raw, []byte("_ _ ")):
		r.inSource = r.section == failuresSection || r.section == errorsSection
	case bytes.HasPrefix(raw, []byte("_")) && bytes.HasSuffix(raw, []byte("_")):
		r.heading(raw)
	case bytes.HasPrefix(raw, []byte("---")) && bytes.Contains(raw, []byte(" Captured ")):
		r.inSource = false
	case bytes.HasPrefix(raw, []byte("[gw")) && len(r.blocks) > 0 && r.section != noSection:
		if worker, _, ok := bytes.Cut(raw[1:], []byte("] ")); ok && !bytes.Contains(raw, []byte("::")) {
			r.blocks[len(r.blocks)-1].worker = string(worker)
		}
	}
	switch {
	case !names || !bytes.Contains(low, []byte("::")):
	case bytes.Contains(raw, []byte("PASSED")): // most lines of a good run: not worth more
		r.running = ""
	default:
		r.node(raw)
	}
}

// ruler reads a line of "=": a section's title or the closing counts.
func (r *report) ruler(raw []byte) {
	title := string(bytes.Trim(raw, "= "))
	r.inSource, r.section = false, noSection
	switch {
	case title == "FAILURES":
		r.section = failuresSection
	case title == "ERRORS":
		r.section = errorsSection
	case title == "short test summary info":
		r.section = summarySection
	}
	n := 0
	for _, part := range strings.Split(strings.TrimSuffix(title, ")"), ", ") {
		word := strings.Fields(part)
		if len(word) >= 2 && (word[1] == "failed" || word[1] == "error" || word[1] == "errors") {
			count, err := strconv.Atoi(word[0])
			if err == nil {
				n += count
			}
		}
	}
	r.failed = max(r.failed, n)
}

// heading reads "____ test_name[case] ____".
func (r *report) heading(raw []byte) {
	title := string(bytes.TrimSpace(bytes.Trim(raw, "_")))
	if title == "" || r.section != failuresSection && r.section != errorsSection || len(r.blocks) >= maxTests {
		return
	}
	r.inSource = true
	for _, p := range []string{"ERROR at setup of ", "ERROR at teardown of ", "ERROR collecting "} {
		title = strings.TrimPrefix(title, p)
	}
	r.blocks = append(r.blocks, block{name: short(title), errors: r.section == errorsSection})
}

func short(s string) string {
	if len(s) > maxTestName {
		s = s[:maxTestName]
	}
	return strings.ToValidUTF8(strings.Clone(s), "")
}

// node reads a node id and its outcome: pytest -v's and xdist's progress lines and
// the short summary.
func (r *report) node(raw []byte) {
	worker := ""
	words := strings.Fields(string(raw[:min(len(raw), 4*maxTestName)]))
	if len(words) > 0 && strings.HasPrefix(words[0], "[gw") {
		worker = strings.Trim(words[0], "[]")
		words = words[1:]
	}
	for len(words) > 1 && (strings.HasPrefix(words[0], "[") || strings.HasSuffix(words[0], "%]")) {
		words = words[1:]
	}
	if len(words) == 0 {
		return
	}
	outcome, id := "", words[0]
	if id == "FAILED" || id == "ERROR" || id == "PASSED" || id == "SKIPPED" || id == "XFAIL" || id == "XPASS" {
		outcome = id
		id = nodeID(string(raw[bytes.Index(raw, []byte(outcome))+len(outcome):]))
	} else {
		id = nodeID(string(raw))
		for _, w := range words {
			if w == "FAILED" || w == "ERROR" || w == "PASSED" || w == "SKIPPED" || w == "XFAIL" || w == "XPASS" {
				outcome = w
			}
		}
	}
	if !strings.Contains(id, "::") {
		return
	}
	id = short(id)
	r.line = id
	r.running = ""
	failed := outcome == "FAILED" || outcome == "ERROR"
	switch {
	case r.section == summarySection:
		if failed && len(r.summary) < maxTests {
			r.summary = append(r.summary, id)
		}
	case r.section != noSection:
		r.line = ""
	case failed && len(r.live) < maxTests:
		r.live = append(r.live, block{name: id, worker: worker})
	case outcome == "":
		r.running = id
	}
}

// nodeID returns the node id at the start of s: it ends at the first blank outside
// of a parameter list's brackets.
func nodeID(s string) string {
	s = strings.TrimSpace(s)
	depth := 0
	for i, c := range s {
		switch {
		case c == '[':
			depth++
		case c == ']':
			depth--
		case c == ' ' && depth <= 0:
			return s[:i]
		}
	}
	return s
}
