package classify

import "bytes"

// escape removes terminal escapes (CSI, OSC and two-byte ones) and NUL bytes, so
// that a coloured or UTF-16 text is found like a plain one. Line feeds stay.
type escape struct {
	state  byte // 0, or which part of an escape was read last
	length int
}

const (
	plain = iota
	afterEsc
	inCSI
	inOSC
	inOSCEsc

	// maxEscape bytes are taken for one escape; more is a lone ESC in a binary dump.
	maxEscape = 4 << 10
)

// appendClean appends what p shows to dst until dst holds limit bytes and returns
// dst and how many bytes of p it took.
func (e *escape) appendClean(dst, p []byte, limit int) ([]byte, int) {
	taken := 0
	esc, nul := -1, -1 // where the next ones stand in p, once looked for
	for taken < len(p) && len(dst) < limit {
		if e.state != plain {
			if e.take(p[taken]) {
				taken++
			}
			continue
		}
		esc, nul = next(p, esc, taken, 0x1b), next(p, nul, taken, 0)
		to := min(esc, nul, taken+limit-len(dst))
		dst = append(dst, p[taken:to]...)
		taken = to
		if taken < len(p) && len(dst) < limit {
			if taken == esc {
				e.state, e.length = afterEsc, 0
			}
			taken++
		}
	}
	return dst, taken
}

// next returns where c stands in p from from on, len(p) without one; known is the
// last answer. Each stretch is so searched once, also where another byte is frequent.
func next(p []byte, known, from int, c byte) int {
	if known >= from {
		return known
	}
	if i := bytes.IndexByte(p[from:], c); i >= 0 {
		return from + i
	}
	return len(p)
}

// take reads one byte of an escape and tells whether it belonged to it.
func (e *escape) take(c byte) bool {
	e.length++
	if c == '\n' || e.length > maxEscape {
		e.state = plain
		return false
	}
	switch e.state {
	case afterEsc:
		switch c {
		case '[':
			e.state = inCSI
		case ']', 'P', '^', '_':
			e.state = inOSC
		case '(', ')', '#':
			// one more byte follows
		case 0x1b:
			e.length = 0
		default:
			e.state = plain
		}
	case inCSI:
		if c >= 0x40 && c <= 0x7e {
			e.state = plain
		} else if c < 0x20 || c > 0x7e {
			e.state = plain
			return false
		}
	case inOSC:
		if c == 0x07 {
			e.state = plain
		} else if c == 0x1b {
			e.state = inOSCEsc
		}
	case inOSCEsc:
		if c == '\\' {
			e.state = plain
		} else if c != 0x1b {
			e.state = inOSC
		}
	}
	return true
}
