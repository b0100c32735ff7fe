package classify

import "bytes"

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
