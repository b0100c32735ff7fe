package classify

import "bytes"

// noEvidence tells which rule, or which property of where the line stands, keeps
// it from deciding.
func (s *Scanner) noEvidence(st *stream, low, start, before []byte) (by, why string) {
	for _, i := range s.prog.lines {
		e := &s.prog.entries[i]
		if (len(e.texts) == 0 || s.prog.said(e, start)) && e.regexp(start) {
			return e.rule.ID, "line that is no evidence"
		}
	}
	switch {
	case st.tests.inSource && (bytes.HasPrefix(low, []byte("    ")) || bytes.HasPrefix(low, []byte(">  "))):
		return "pytest.source", "source shown by pytest"
	case st.tests.inSource && local(low):
		return "pytest.local", "value of a local variable shown by pytest"
	case bytes.HasPrefix(low, []byte("___")) && bytes.HasSuffix(bytes.TrimRight(low, " "), []byte("_")):
		return "pytest.heading", "name of a test"
	case sourceLine(low, before):
		return "traceback.source", "source shown by a traceback"
	case expected(before):
		return "output.expected", "under a heading that says it is expected"
	}
	return "", ""
}

// local tells whether a line is "name = value".
func local(low []byte) bool {
	i := 0
	for i < len(low) && isWord(low[i]) {
		i++
	}
	rest := bytes.TrimLeft(low[i:], " ")
	return i > 0 && len(rest) > 1 && rest[0] == '=' && rest[1] == ' '
}

// expected tells whether before ends within a block whose heading, a line between
// dashes, says that its errors are expected.
func expected(before []byte) bool {
	if !bytes.Contains(before, []byte("expected")) {
		return false
	}
	for range 40 {
		line, rest := lastLine(before)
		if line == nil {
			return false
		}
		t := bytes.TrimSpace(line)
		for _, rule := range []string{"---", "===", "***", "###"} {
			if bytes.HasPrefix(t, []byte(rule)) && bytes.HasSuffix(t, []byte(rule)) {
				return expectedWord(t)
			}
		}
		before = rest
	}
	return false
}

// expectedWord tells whether a heading has the word "expected", not only as a part
// of a name.
func expectedWord(t []byte) bool {
	for _, w := range bytes.FieldsFunc(t, func(r rune) bool { return r == ' ' || r == '(' || r == ')' || r == ':' || r == ',' }) {
		if string(w) == "expected" {
			return true
		}
	}
	return false
}

// sourceLine tells whether line is source text that a Python traceback shows:
// indented below a line that names a file. before holds the lines before it.
func sourceLine(line []byte, before []byte) bool {
	const deepest = 12 // lines of one statement in a traceback
	for range deepest {
		if indent(peel(line)) < 4 {
			return false
		}
		prev, rest := lastLine(before)
		if prev == nil {
			return false
		}
		if p := bytes.TrimLeft(peel(prev), " "); bytes.HasPrefix(p, []byte(`file "`)) || bytes.HasPrefix(p, []byte(`file \"`)) {
			return true
		}
		line, before = prev, rest
	}
	return false
}

func indent(b []byte) int { return len(b) - len(bytes.TrimLeft(b, " \t")) }

// lastLine cuts the last line off b, which ends with a line end; nil if b holds
// no whole line.
func lastLine(b []byte) (line, rest []byte) {
	b = bytes.TrimSuffix(b, []byte("\n"))
	b = bytes.TrimSuffix(b, []byte("\r"))
	i := bytes.LastIndexAny(b, "\r\n")
	if len(b) == 0 {
		return nil, nil
	}
	return b[i+1:], b[:i+1]
}
