package classify

import (
	"bytes"
	"slices"
)

// maxPeel bounds how many prefixes are taken off a line: a rank's, a worker's, a
// container runtime's and a logger's stack up, more have not been seen.
const maxPeel = 8

// lower writes the ASCII lower case of src over dst.
func lower(dst, src []byte) []byte {
	dst = append(dst[:0], src...)
	for i, c := range dst {
		if 'A' <= c && c <= 'Z' {
			dst[i] = c + 'a' - 'A'
		}
	}
	return dst
}

func isWord(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c >= 0x80
}

// peel returns line (lower case) without what loggers, launchers and containers
// put in front; the blanks that indent the text itself stay.
func peel(line []byte) []byte {
	for i := range maxPeel {
		n := prefix(line, i == 0)
		if n == 0 {
			return line
		}
		line = line[n:]
		if len(line) > 0 && (line[0] == ' ' || line[0] == '\t') {
			line = line[1:]
		}
	}
	return line
}

// prefix returns the length of one prefix at the start of line, 0 for none. The
// blanks before it count only if there is one. Only the first may be a container's
// name: further columns are a table's.
func prefix(line []byte, first bool) int {
	trimmed := bytes.TrimLeft(line, " \t")
	blank := len(line) - len(trimmed)
	if len(trimmed) == 0 || blank > 3 {
		return 0
	}
	n := 0
	switch c := trimmed[0]; {
	case c == '[':
		n = bracketed(trimmed, ']')
	case c == '(':
		if n = bracketed(trimmed, ')'); n > 0 && !bytes.ContainsAny(trimmed[:n], "=0123456789") {
			n = 0
		}
	case c == '|' || c == '>':
		if len(trimmed) > 1 && trimmed[1] == ' ' && blank == 0 && !bytes.HasPrefix(trimmed, []byte(">  ")) {
			n = 1
		}
	case (c == '-' || c == '*') && len(trimmed) > 1 && trimmed[1] == ' ':
		n = 1
	case c == 'e' && blank == 0 && bytes.HasPrefix(trimmed, []byte("e  ")): // pytest's error lines
		return 1
	default:
		n = token(trimmed, first)
	}
	if n == 0 {
		return 0
	}
	if n < len(trimmed) && (trimmed[n] == ':' || trimmed[n] == ']') {
		n++
	}
	return blank + n
}

// bracketed returns the length of a short bracketed group at the start.
func bracketed(b []byte, closing byte) int {
	const longest = 80
	i := bytes.IndexByte(b[:min(len(b), longest)], closing)
	if i < 0 {
		return 0
	}
	if i+1 < len(b) && b[i+1] == '<' { // mpirun's [1,0]<stderr>:
		if j := bytes.IndexByte(b[i:min(len(b), i+longest)], '>'); j > 0 {
			return i + j + 1
		}
	}
	return i + 1
}

var levels = []string{"info", "warning", "warn", "error", "debug", "critical", "fatal", "stderr", "stdout", "f", "p"}

// token returns the length of a word at the start that only a logger writes: a
// time, a level, a rank, a process number, glog's file and line.
func token(b []byte, first bool) int {
	end := bytes.IndexAny(b, " \t")
	if end < 0 {
		return 0
	}
	word := b[:end]
	digits, colons, dashes, letters := 0, 0, 0, 0
	for _, c := range word {
		switch {
		case '0' <= c && c <= '9':
			digits++
		case c == ':':
			colons++
		case c == '-' || c == '/':
			dashes++
		case isWord(c):
			letters++
		}
	}
	last := word[len(word)-1]
	switch {
	case digits >= 4 && letters <= 3 && (colons >= 2 || dashes >= 1 || digits >= 5), // times and process numbers
		digits == len(word)-1 && last == ':',                                                   // srun -l
		digits >= 4 && digits == len(word)-1 && bytes.IndexByte([]byte("iwefd"), word[0]) >= 0, // glog
		digits > 0 && last == ']' && bytes.Contains(word, []byte(".")):                         // glog's file.cc:12]
		return end
	}
	for _, l := range levels {
		if string(bytes.TrimRight(word, ":")) == l && (len(l) > 1 || end+1 < len(b)) {
			return end
		}
	}
	if rest := bytes.TrimLeft(b[end:], " "); first && letters > 0 && len(rest) > 1 && rest[0] == '|' && rest[1] == ' ' {
		return len(b) - len(rest) + 1 // docker compose: "name  | "
	}
	return 0
}

// leads are the words that announce an error text; an identifier that contains
// "error" does so too.
var leads = []string{"failure", "failed", "fail", "fails", "warning", "warn", "exception", "what", "fault", "aborted", "aborting", "abort", "panic", "fatal", "critical"}

// fillers may stand between a lead and the text.
var fillers = []string{"with", "code", "is", "was", "status", "due", "to", "by", "returned", "return", "message", "msg", "reason", "desc", "description", "number", "no", "the", "runtime", "driver", "api", "a", "at", "because", "of", "got", "type"}

const (
	// maxFillers words may separate a lead from the text, maxPunct other
	// characters each word from the next.
	maxFillers = 4
	maxPunct   = 12
)

// led tells whether one of words, or a lead when words has "lead", stands before
// line[:pos] with nothing but punctuation, numbers, bracketed words and fillers
// between.
func led(line []byte, pos int, words []string) bool {
	for range maxFillers + 1 {
		end := pos
		for end > 0 && pos-end < maxPunct && !isWord(line[end-1]) {
			end--
		}
		start := end
		for start > 0 && isWord(line[start-1]) {
			start--
		}
		word := string(line[start:end])
		if word == "" {
			return false
		}
		numeric := true
		for i := range word {
			numeric = numeric && '0' <= word[i] && word[i] <= '9'
		}
		for _, w := range words {
			if w == word || w == "lead" && isLead(word) {
				return true
			}
		}
		bracket := start > 0 && end < len(line) && (line[start-1] == '[' && line[end] == ']' || line[start-1] == '(' && line[end] == ')')
		if !numeric && !bracket && !slices.Contains(fillers, word) {
			if start = pathStart(line, start, end); start < 0 {
				return false
			}
		}
		pos = start
	}
	return false
}

// numbered tells whether one of numbers follows line[:pos]: "error 700", "error
// code: 700", "ERROR_UNKNOWN (code=700)".
func numbered(line []byte, pos int, numbers []int) bool {
	for range maxFillers {
		for pos < len(line) && isWord(line[pos]) && (line[pos] < '0' || line[pos] > '9') {
			pos++
		}
		for n := 0; n < maxPunct && pos < len(line) && !isWord(line[pos]); n++ {
			pos++
		}
		end, n := pos, 0
		for end < len(line) && '0' <= line[end] && line[end] <= '9' && n < 1<<20 {
			n = 10*n + int(line[end]-'0')
			end++
		}
		if end > pos {
			fraction := end+1 < len(line) && line[end] == '.' && '0' <= line[end+1] && line[end+1] <= '9'
			return !fraction && (end == len(line) || !isWord(line[end])) && slices.Contains(numbers, n)
		}
		for end < len(line) && isWord(line[end]) {
			end++
		}
		if !slices.Contains(numberWords, string(line[pos:end])) {
			return false
		}
		pos = end
	}
	return false
}

// numberWords may stand between a lead and its number.
var numberWords = []string{"code", "number", "no", "status", "value", "is", "with"}

// pathStart returns where the file name with line[start:end] in it starts, -1 if
// there is none: "failure main.cu:12 'text'".
func pathStart(line []byte, start, end int) int {
	from := bytes.LastIndexByte(line[:start], ' ') + 1
	if bytes.IndexByte(line[from:end], '.') < 0 && bytes.IndexByte(line[from:end], '/') < 0 {
		return -1
	}
	return from
}

func isLead(word string) bool {
	return bytes.Contains([]byte(word), []byte("err")) || slices.Contains(leads, word) ||
		bytes.HasSuffix([]byte(word), []byte("exception")) || bytes.HasSuffix([]byte(word), []byte("failed"))
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
