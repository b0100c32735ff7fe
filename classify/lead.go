package classify

import (
	"bytes"
	"slices"
	"strconv"
)

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
		name := pos
		for pos < len(line) && isWord(line[pos]) && (line[pos] < '0' || line[pos] > '9') {
			pos++
		}
		gap := pos
		for pos < len(line) && pos-gap < maxPunct && !isWord(line[pos]) {
			pos++
		}
		if gap > name && bytes.Equal(bytes.TrimSpace(line[gap:pos]), []byte("=")) {
			return false // a table of enumerators
		}
		end := pos
		for end < len(line) && isWord(line[end]) {
			end++
		}
		word := string(line[pos:end])
		if n, err := strconv.Atoi(word); err == nil {
			fraction := end+1 < len(line) && line[end] == '.' && '0' <= line[end+1] && line[end+1] <= '9'
			return !fraction && slices.Contains(numbers, n)
		}
		if !slices.Contains(numberWords, word) {
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

// nameLeads announce an enumerator in addition to the usual leads.
var nameLeads = []string{"lead", "returned", "result", "results", "status", "code", "rc", "ret", "retval", "res", "got"}

// named tells whether the identifier that ends at end and has its last part at
// at is an enumerator printed as an error, not a mention of it. start is low
// without its prefixes.
func named(low, start []byte, at, end int) bool {
	if end < len(low) && isWord(low[end]) {
		return false
	}
	for at > 0 && isWord(low[at-1]) {
		at--
	}
	if begin := len(low) - len(start); at >= begin && len(bytes.TrimLeft(low[begin:at], " \t")) == 0 {
		rest := bytes.TrimLeft(low[end:], " ") // "NAME = 700," lists enumerators
		return len(rest) == 0 || bytes.IndexByte([]byte("=,;|"), rest[0]) < 0
	}
	before := bytes.TrimRight(low[:at], " `'\"")
	rest := bytes.TrimLeft(low[end:], " ")
	switch {
	case led(low, at, nameLeads), bytes.HasSuffix(before, []byte("search for")), bytes.HasSuffix(before, []byte("results in")):
		return true
	case bytes.HasSuffix(before, []byte(":")) && (len(rest) == 0 || bytes.IndexByte([]byte(".,;)]'\""), rest[0]) >= 0):
		return true // "failed to do this: NAME; while doing that"
	}
	return len(rest) > 1 && (rest[0] == ':' && rest[1] == ' ' || rest[0] == '(' || bytes.HasPrefix(rest, []byte("- ")))
}
