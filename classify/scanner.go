// Package classify finds markers of device errors in the output of a command
// while it streams by, and says which class the whole run has and why. It knows
// how log lines are built, but no vendor: wordings are rules that the caller gives.
package classify

import (
	"io"
	"sync"
)

// Config says what to look for.
type Config struct {
	// Rules returns the rules, in order of preference. It is called once, when
	// the first bytes are searched: a silent command costs nothing.
	Rules func() ([]Rule, error)
	// Vendor is the active GEMS_VENDOR value, Vendors returns all known ones (it is
	// called with Rules): modules of the others are reported as foreign.
	Vendor  string
	Vendors func() []string
	// Pytest says that the command is pytest: failing tests are tracked.
	Pytest bool
	// Explain keeps an Event per line that matched or was deliberately ignored.
	Explain bool
	// Extra are rules that come before the others.
	Extra []Rule
}

// Hit is one line that matched.
type Hit struct {
	Class      Class  `json:"class"`
	Marker     string `json:"marker"`
	Line       string `json:"line"`        // without terminal escapes, valid UTF-8, cut to a bound
	LineNumber int    `json:"line_number"` // line feeds of its stream before it, plus one
	Stream     string `json:"stream"`
}

// Counts is how many lines of each class were seen.
type Counts struct {
	Fatal       int `json:"fatal"`
	Poisoned    int `json:"poisoned"`
	Recoverable int `json:"recoverable"`
}

// Event tells what was made of one line.
type Event struct {
	LineNumber int    `json:"line_number"`
	Stream     string `json:"stream"`
	Line       string `json:"line"`
	Rule       string `json:"rule"`
	Class      string `json:"class"` // a class's name, or "ignored"
	Why        string `json:"why"`
}

// Result is the verdict on all streams together.
type Result struct {
	Class Class `json:"class"`
	// Root is the first line of the decisive class, nil without one.
	Root *Hit `json:"root"`
	// Otherwise is the line that would have decided without the root line.
	Otherwise *Hit   `json:"otherwise"`
	Counts    Counts `json:"counts"`
	// ForeignVendors are vendors other than the active one whose modules showed up.
	ForeignVendors []string `json:"foreign_vendors"`
	Pytest         *Pytest  `json:"pytest,omitempty"`
	Events         []Event  `json:"events,omitempty"`
}

// maxEvents bounds what Explain keeps: enough to read, little enough to hold.
const maxEvents = 4096

// Scanner looks for markers in the streams of one run. Its methods and its
// streams may be used from several goroutines.
type Scanner struct {
	mu      sync.Mutex
	config  Config
	prog    *program
	err     error
	streams []*stream
	active  *stream // the one written to last
	done    bool
	result  Result

	tallies []tally // per entry of prog
	seen    []bool  // per entry of prog
	order   int
	foreign map[string]bool
	events  []Event

	low, before, next, joined, masked []byte // reused
	touched, touchedJoined            []int
	from                              int // where the line looked at starts in its stream's buffer
}

// tally is what is known of one rule's lines: how many, and the first two.
type tally struct {
	count int
	hits  []Hit
	order [2]int // when the hits came among those of all rules
	at    place  // of the first

	last     string // stream and number of the line counted last
	lastLine int
}

// New returns a Scanner that has seen nothing.
func New(c Config) *Scanner { return &Scanner{config: c} }

// Stream returns the writer for the stream of this name ("stdout", "stderr").
// However its bytes are split into writes, the result is the same.
func (s *Scanner) Stream(name string) io.Writer {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, st := range s.streams {
		if st.name == name {
			return st
		}
	}
	st := &stream{scanner: s, name: name}
	s.streams = append(s.streams, st)
	return st
}

// Err returns why the rules could not be used, nil if they could or were not needed.
func (s *Scanner) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// load makes the rules ready; nil if they cannot be.
func (s *Scanner) load() *program {
	if s.prog == nil && s.err == nil {
		s.prog, s.err = compile(s.config)
		if s.prog != nil {
			s.tallies = make([]tally, len(s.prog.entries))
			s.seen = make([]bool, len(s.prog.entries))
		}
	}
	return s.prog
}

// Result ends the streams and returns the verdict; what is written later is not
// looked at.
func (s *Scanner) Result() Result {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.done {
		return s.result
	}
	for _, st := range s.streams {
		if st != s.active && len(st.buf) > 0 {
			st.search(true)
		}
	}
	if s.active != nil {
		s.active.search(true)
	}
	s.done = true
	s.result = s.conclude()
	for _, st := range s.streams {
		st.buf = nil
	}
	return s.result
}

// class is what the lines of entry i mean after all that was seen in the run.
func (s *Scanner) class(i int) Class {
	r := s.prog.entries[i].rule
	if i+1 < len(s.prog.entries) && s.prog.entries[i+1].kind == seen && s.seen[i+1] {
		return r.SeenClass
	}
	return r.Class
}

func (s *Scanner) conclude() Result {
	res := Result{ForeignVendors: s.foreignVendors(), Events: s.events}
	for i := range s.tallies {
		t := &s.tallies[i]
		if t.count == 0 {
			continue
		}
		c := s.class(i)
		for j := range t.hits {
			t.hits[j].Class = c
		}
		switch c {
		case Fatal:
			res.Counts.Fatal += t.count
		case Poisoned:
			res.Counts.Poisoned += t.count
		case Recoverable:
			res.Counts.Recoverable += t.count
		}
	}
	root, _ := s.decisive(-1)
	if root >= 0 {
		hit := s.tallies[root].hits[0]
		res.Class, res.Root = hit.Class, &hit
		if i, n := s.decisive(root); i >= 0 {
			hit := s.tallies[i].hits[n]
			res.Otherwise = &hit
		}
	}
	res.Pytest = s.pytest(root)
	return res
}

// decisive returns the rule, and which of its hits, that has the highest class and
// came first; the first hit of the rule except is left out.
func (s *Scanner) decisive(except int) (rule, hit int) {
	rule = -1
	for i := range s.tallies {
		t := &s.tallies[i]
		n := 0
		if i == except {
			n = 1
		}
		if n >= len(t.hits) {
			continue
		}
		if rule >= 0 {
			best := &s.tallies[rule]
			if c, b := t.hits[n].Class, best.hits[hit].Class; c < b || c == b && t.order[n] > best.order[hit] {
				continue
			}
		}
		rule, hit = i, n
	}
	return rule, hit
}
