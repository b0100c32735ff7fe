package classify

import "bytes"

const (
	// bufferSize is read ahead per stream before it is searched: larger gains
	// nothing, smaller searches more often. It holds several keepBehind.
	bufferSize = 128 << 10
	// longLine is where a line stops being read as a whole: beyond it, it is read
	// in pieces of pieceStep bytes that overlap, so that memory stays bounded and
	// an error at the end of a progress dump is still found.
	longLine   = 16 << 10
	pieceStep  = 12 << 10
	pieceBack  = 1 << 10
	pieceAhead = 3 << 10
	// contextSize bytes before a line are looked at for what it stands in.
	contextSize = 4 << 10
	// keepBehind bytes stay readable before the search position: a whole line and
	// what stands before it.
	keepBehind = longLine + 2*contextSize
	// nextSize bytes of the following line are known before a line is judged,
	// since terminals and log frames wrap messages.
	nextSize = 1 << 10
)

// stream is one output stream: bytes in any portions go in, lines worth a look go
// to the scanner.
type stream struct {
	scanner *Scanner
	name    string
	buf     []byte // terminal escapes and NULs removed
	pos     int    // the search goes on here
	base    int64  // bytes dropped before buf
	start   int64  // where the line that buf begins with started
	lines   int    // line feeds before buf[counted:]
	counted int
	escape  escape
	tests   report
}

// Write takes the next bytes of the stream. It never fails.
func (st *stream) Write(p []byte) (int, error) {
	s := st.scanner
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.done || len(p) == 0 {
		return len(p), nil
	}
	if s.active != nil && s.active != st {
		s.active.search(false) // keeps the order in which lines of several streams came
	}
	s.active = st
	if st.buf == nil {
		st.buf = make([]byte, 0, bufferSize+slack)
	}
	for rest := p; len(rest) > 0; {
		var n int
		st.buf, n = st.escape.appendClean(st.buf, rest, bufferSize)
		rest = rest[n:]
		if len(st.buf) == bufferSize {
			st.search(false)
			st.drop()
		}
	}
	return len(p), nil
}

// drop makes room in the buffer.
func (st *stream) drop() {
	n := st.pos - keepBehind
	if n <= 0 {
		return
	}
	gone := st.buf[:n]
	if i := lastEnd(gone); i >= 0 {
		st.start = st.base + int64(i) + 1
	}
	st.count(n)
	st.buf = st.buf[:copy(st.buf, st.buf[n:])]
	st.base += int64(n)
	st.pos -= n
	st.counted -= n
}

// count advances the line count to buf[:to].
func (st *stream) count(to int) {
	if to > st.counted {
		st.lines += bytes.Count(st.buf[st.counted:to], []byte("\n"))
		st.counted = to
	}
}

// search looks at every line in the buffer that has a gate and whose surroundings
// are known; final says that nothing follows.
func (st *stream) search(final bool) {
	p := st.scanner.load()
	if p == nil {
		st.pos = len(st.buf)
		return
	}
	for {
		at, _ := p.gates.next(st.buf[:len(st.buf)+slack], st.pos, len(st.buf))
		if at < 0 {
			st.pos = max(st.pos, len(st.buf)-wideWidth+1)
			return
		}
		l, ready := st.line(at, final)
		if !ready {
			st.pos = at
			return
		}
		st.count(l.from)
		st.scanner.look(st, l)
		st.pos = l.next
	}
}

// span is a line in a stream's buffer, or a piece of a long line.
type span struct {
	from, to int
	next     int // where the search goes on
	piece    bool
}

// begin returns the offset in the whole stream at which the line with buf[at] starts.
func (st *stream) begin(at int) int64 {
	if i := lastEnd(st.buf[:at]); i >= 0 {
		return st.base + int64(i) + 1
	}
	return st.start
}

// line returns the line, or the piece of a long line, around buf[at]; ready says
// that all of it, and of a line nextSize bytes after it or the next line, is there.
func (st *stream) line(at int, final bool) (l span, ready bool) {
	begin := st.begin(at)
	horizon := min(len(st.buf), at+longLine+1)
	end := -1 // unknown
	if i := firstEnd(st.buf[at:horizon]); i >= 0 {
		end = at + i
	} else if final && horizon == len(st.buf) {
		end = horizon
	}
	switch {
	case end >= 0 && st.base+int64(end)-begin <= longLine:
		return span{from: int(begin - st.base), to: end, next: end}, final || st.known(end)
	case end < 0 && st.base+int64(horizon)-begin <= longLine:
		return l, false
	}
	step := begin + ((st.base+int64(at)-begin)/pieceStep+1)*pieceStep
	l = span{from: int(max(step-pieceStep-pieceBack, begin) - st.base), next: int(step - st.base), piece: true}
	l.to = l.next + pieceAhead
	if end >= 0 {
		l.to, l.next = min(l.to, end), min(l.next, end)
	}
	if l.to > len(st.buf) {
		l.to, ready = len(st.buf), final
		return l, ready
	}
	return l, true
}

// known tells whether enough of what follows the line that ends at buf[end] is there.
func (st *stream) known(end int) bool {
	if len(st.buf)-end > nextSize+2 {
		return true
	}
	rest := st.buf[st.skipEnd(end):]
	return firstEnd(rest) >= 0 && len(rest) < len(st.buf)-end
}

// skipEnd returns the index after the line end at buf[end].
func (st *stream) skipEnd(end int) int {
	if end+1 < len(st.buf) && st.buf[end] == '\r' && st.buf[end+1] == '\n' {
		return end + 2
	}
	return min(end+1, len(st.buf))
}

// after returns the beginning of the line that follows l, nothing for a piece.
func (st *stream) after(l span) []byte {
	if l.piece {
		return nil
	}
	from := st.skipEnd(l.to)
	next := st.buf[from:min(len(st.buf), from+nextSize)]
	if i := firstEnd(next); i >= 0 {
		next = next[:i]
	}
	return next
}

// before returns what stands before the line that starts at buf[from].
func (st *stream) before(from int) []byte { return st.buf[max(0, from-contextSize):from] }

// firstEnd and lastEnd return the index of the first or last line end, -1 without one.
func firstEnd(b []byte) int {
	i := bytes.IndexByte(b, '\n')
	if i >= 0 {
		b = b[:i]
	}
	if j := bytes.IndexByte(b, '\r'); j >= 0 {
		return j
	}
	return i
}

func lastEnd(b []byte) int {
	i := bytes.LastIndexByte(b, '\n')
	if j := bytes.LastIndexByte(b[i+1:], '\r'); j >= 0 {
		return i + 1 + j
	}
	return i
}
