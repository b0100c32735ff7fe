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
	for taken < len(p) && len(dst) < limit {
		rest := p[taken:]
		if e.state != plain {
			if e.take(rest[0]) {
				taken++
			}
			continue
		}
		n := min(len(rest), limit-len(dst))
		if i := bytes.IndexByte(rest[:n], 0x1b); i >= 0 {
			n = i
		}
		if i := bytes.IndexByte(rest[:n], 0); i >= 0 {
			n = i
		}
		dst = append(dst, rest[:n]...)
		taken += n
		if n < len(rest) && len(dst) < limit {
			if rest[n] == 0x1b {
				e.state, e.length = afterEsc, 0
			}
			taken++
		}
	}
	return dst, taken
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
