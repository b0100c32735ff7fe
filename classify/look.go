package classify

import (
	"bytes"
	"strings"
)

// maxHitLine bounds the line kept in a Hit, in bytes; device errors that matter
// say so in their first words.
const maxHitLine = 1000

// restSize is how much of a line words like "may raise" take the evidence from: a
// sentence, not what follows in a dump on one line.
const restSize = 200

// verdict is what one line means.
type verdict struct {
	entry   int    // the rule that decides, -1 if none
	at      int    // where in the line
	ignored string // why the line, or the words in it, are no evidence; "" if they are
	why     string
}

// look judges the line l of st.
func (s *Scanner) look(st *stream, l span) {
	raw := st.buf[l.from:l.to]
	s.low = lower(s.low, raw)
	s.low = pad(s.low)
	s.touched = s.prog.touched(s.touched, s.low)
	evidence := false
	for _, i := range s.touched {
		e := &s.prog.entries[i]
		switch e.kind {
		case pytest:
			st.tests.structure(raw, s.low, s.config.Pytest)
		case foreign:
			s.foreignLine(s.low)
		case seen:
			s.seen[i] = s.seen[i] || s.prog.said(e, s.low)
		default:
			evidence = true
		}
	}
	if !evidence {
		return
	}
	s.from = l.from
	s.next = lower(s.next, st.after(l))
	v := s.judge(st, s.low)
	number := st.lines + 1
	raw = around(raw, v.at)
	if v.entry >= 0 {
		s.hit(st, v.entry, raw, number)
	}
	if s.config.Explain {
		s.explain(st, v, raw, number)
	}
}

// said tells whether one of e's texts is in low after boilerplate is taken out.
func (p *program) said(e *entry, low []byte) bool {
	for _, t := range e.texts {
		if bytes.Contains(low, t) {
			return true
		}
	}
	return false
}

// pad makes b readable slack bytes beyond its end.
func pad(b []byte) []byte { return append(b, make([]byte, slack)...)[:len(b)] }

// judge weighs a line, each part of it by itself if it holds escaped line feeds,
// as an exception's representation or a JSON record does.
func (s *Scanner) judge(st *stream, low []byte) verdict {
	sep := []byte(`\n`)
	if !bytes.Contains(low, sep) {
		return s.judgePart(st, low, nil, s.next)
	}
	best := verdict{entry: -1}
	before := append([]byte(nil), s.context(st)...)
	for offset := 0; len(low) > 0; {
		part, rest, more := bytes.Cut(low, sep)
		next := s.next
		if more {
			next, _, _ = bytes.Cut(rest, sep)
		}
		v := s.judgePart(st, part, before, next)
		v.at += offset
		if best.entry < 0 && (v.entry >= 0 || best.ignored == "") ||
			v.entry >= 0 && s.prog.entries[v.entry].rule.Class > s.prog.entries[best.entry].rule.Class {
			best = v
		}
		offset += len(part) + len(sep)
		before = append(append(before, part...), '\n')
		before = before[max(0, len(before)-contextSize):]
		low = rest
	}
	return best
}

// context returns what stands before the line that is looked at. Most lines with a
// gate say nothing, so it is made only for those that do.
func (s *Scanner) context(st *stream) []byte {
	s.before = lower(s.before, st.before(s.from))
	return s.before
}

// judgePart weighs one line that stands between before (nil: its context) and next.
func (s *Scanner) judgePart(st *stream, low, before, next []byte) verdict {
	text, mask := s.mask(low)
	start := peel(text)
	v := verdict{ignored: mask, why: "boilerplate"}
	if v.entry, v.at = s.prog.best(s.touched, text, start, false); v.entry >= 0 {
		v.ignored, v.why = "", "matched"
	}
	if v.entry < 0 || s.prog.entries[v.entry].rule.Class <= Recoverable {
		if i := s.prog.cut(low, text); i >= 0 && s.prog.outranks(i, v.entry) {
			v = verdict{entry: i, why: "matched the beginning of a message cut by pytest"}
		} else if i := s.join(text, next); i >= 0 && s.prog.outranks(i, v.entry) {
			v = verdict{entry: i, why: "matched together with the next line"}
		}
	}
	by, why := mask, v.why
	if v.entry >= 0 {
		if before == nil {
			before = s.context(st)
		}
		by, why = s.noEvidence(st, low, start, before)
	}
	if by != "" {
		v = verdict{ignored: by, why: why}
		if v.entry, v.at = s.prog.best(s.touched, low, start, true); v.entry >= 0 {
			v.ignored, v.why = "", "runtime banner"
		}
	}
	return v
}

// best returns the entry of the highest class, the earliest of equals, that
// matches, and where; only banners count if so said.
func (p *program) best(touched []int, low, start []byte, banners bool) (best, at int) {
	best = -1
	for _, i := range touched {
		e := &p.entries[i]
		if e.kind != marker || banners && !e.rule.Anywhere || best >= 0 && !p.outranks(i, best) {
			continue
		}
		if pos := e.matches(low, start); pos >= 0 {
			best, at = i, pos
		}
	}
	return best, at
}

func (p *program) outranks(i, j int) bool {
	return j < 0 || p.entries[i].rule.Class > p.entries[j].rule.Class
}

// mask blanks the words of ignoring rules and node ids, which quote errors in
// their parameters; by names the first rule that applied.
func (s *Scanner) mask(low []byte) (text []byte, by string) {
	text = low
	blank := func(from, to int, rule string) {
		if by == "" {
			by = rule
			s.masked = pad(append(s.masked[:0], text...))
			text = s.masked
		}
		for i := from; i < to; i++ {
			text[i] = ' '
		}
	}
	for _, i := range s.prog.ignores {
		r := s.prog.entries[i].rule
		for _, t := range s.prog.entries[i].texts {
			for at := find(text, t, 0); at >= 0; at = find(text, t, at+1) {
				to := at + len(t)
				if r.Ignore == ignoreRest {
					if at > 0 && isWord(text[at-1]) {
						continue // "unexpected error" is not an expected one
					}
					to = min(to+restSize, len(text))
				}
				blank(at, to, r.ID)
			}
		}
	}
	for at := find(text, []byte(".py::"), 0); at >= 0; at = find(text, []byte(".py::"), at+1) {
		from := bytes.LastIndexByte(text[:at], ' ') + 1
		blank(from, from+len(nodeID(string(text[from:]))), "pytest.node_id")
	}
	return text, by
}

// join weighs a line together with the one it was wrapped into.
func (s *Scanner) join(text, next []byte) int {
	if len(next) == 0 || !errorWord(text) {
		return -1
	}
	tail := bytes.TrimLeft(peel(next), " \t")
	s.joined = append(append(append(s.joined[:0], bytes.TrimRight(text, " \t")...), ' '), tail...)
	s.joined = pad(s.joined)
	s.touchedJoined = s.prog.touched(s.touchedJoined, s.joined)
	i, _ := s.prog.best(s.touchedJoined, s.joined, peel(s.joined), false)
	if i < 0 {
		return -1
	}
	if e := &s.prog.entries[i]; e.matches(tail, tail) >= 0 {
		return -1 // the next line says it by itself
	}
	return i
}

func errorWord(low []byte) bool {
	for _, w := range []string{"error", "exception", "fail", "what()", "fault", "abort"} {
		if bytes.Contains(low, []byte(w)) {
			return true
		}
	}
	return false
}

// hit counts the line for entry i.
func (s *Scanner) hit(st *stream, i int, raw []byte, number int) {
	t := &s.tallies[i]
	if t.last == st.name && t.lastLine == number {
		return // pieces of one long line
	}
	r := s.prog.entries[i].rule
	st.tests.hit(r.Class)
	if n := len(t.hits); n < len(t.order) {
		s.order++
		t.order[n] = s.order
		t.hits = append(t.hits, Hit{Class: r.Class, Marker: r.ID, Line: clip(raw), LineNumber: number, Stream: st.name})
		if n == 0 {
			t.at = st.tests.place()
		}
	}
	t.count++
	t.last, t.lastLine = st.name, number
}

func (s *Scanner) explain(st *stream, v verdict, raw []byte, number int) {
	if len(s.events) >= maxEvents || v.entry < 0 && v.ignored == "" {
		return
	}
	ev := Event{LineNumber: number, Stream: st.name, Line: clip(raw), Rule: v.ignored, Class: "ignored", Why: v.why}
	if v.entry >= 0 {
		ev.Rule, ev.Class = s.prog.entries[v.entry].rule.ID, s.prog.entries[v.entry].rule.Class.String()
	}
	s.events = append(s.events, ev)
}

// around returns the part of a long line that shows what stands at at.
func around(raw []byte, at int) []byte {
	if len(raw) <= maxHitLine || at < maxHitLine/2 {
		return raw
	}
	return raw[min(at-maxHitLine/2, len(raw)-maxHitLine):]
}

// clip makes a line fit for a record.
func clip(raw []byte) string {
	raw = raw[:min(len(raw), maxHitLine)]
	return strings.TrimRight(strings.ToValidUTF8(string(raw), "\uFFFD"), " \t")
}
