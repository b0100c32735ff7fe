package classify

import (
	"encoding/binary"
	"math/bits"
	"slices"
)

// gates finds, in bytes that mostly hold none of them, windows cut from the rules'
// texts: eight bytes of each, or fewer for texts that have no more. At every fourth
// byte a group of bytes is looked up in a table of the groups in all windows; a group
// is so short that one of them lies in any window. ASCII case is folded by clearing
// one bit, which merges some punctuation too: a hit is only the reason to look at a
// line.
type gates struct {
	group uint64 // keeps the bytes of a group, and folds them
	// marks tells by a group's hash where in windows it stands: bit d for d bytes
	// after the start of a wide one, bit stride+d for a narrow one.
	marks        [1 << markBits]uint8
	wide, narrow windows
}

// windows are the windows of one width.
type windows struct {
	width int
	mask  uint64 // keeps the bytes of a window, and folds them
	keys  []uint64
	refs  [][]int // what a window stands for, beside keys
}

const (
	stride    = 4
	wideWidth = 8 // a window is compared as one machine word
	// markBits: a table of 64 KiB, of which ordinary text touches so little that it
	// stays in the first-level cache, and where hardly two groups share a place.
	markBits = 16
	// slack is how many bytes past the searched ones must be readable.
	slack = 8
)

// word returns the eight bytes at b[i:].
func word(b []byte, i int) uint64 { return binary.LittleEndian.Uint64(b[i:]) }

// folded returns a mask that keeps the first n bytes of a word without their case.
func folded(n int) uint64 { return 0xdfdfdfdfdfdfdfdf & (1<<(8*n) - 1) }

// hash returns the place in marks of the group that a word begins with.
func (g *gates) hash(word uint64) int {
	return int((word & g.group) * 0x9E3779B97F4A7C15 >> (64 - markBits))
}

// newGates builds the tables for texts in lower case; refs[i] belongs to texts[i].
// Short texts make groups small, and with that the search slow, most of all with
// three bytes, where nothing is left of a group.
func newGates(texts []string, refs []int) *gates {
	narrow, short := wideWidth, 0
	for _, t := range texts {
		if narrow = min(narrow, len(t)); len(t) < wideWidth {
			short++
		}
	}
	g := &gates{group: folded(narrow - stride + 1), wide: newWindows(wideWidth, len(texts)-short), narrow: newWindows(narrow, short)}
	common := g.commonness()
	for i, t := range texts {
		if len(t) < wideWidth {
			g.add(&g.narrow, stride, t, refs[i], common)
		} else {
			g.add(&g.wide, 0, t, refs[i], common)
		}
	}
	return g
}

// newWindows returns an empty set for at most n windows.
func newWindows(width, n int) windows {
	size := 64
	for size < 4*n { // mostly empty: a search for what is not there ends at once
		size *= 2
	}
	return windows{width: width, mask: folded(width), keys: make([]uint64, size), refs: make([][]int, size)}
}

// find returns the place of the window that a word begins with, and whether it is
// there.
func (w *windows) find(word uint64) (int, bool) {
	key := word & w.mask
	for s := int(key * 0x9E3779B97F4A7C15 >> (64 - bits.Len(uint(len(w.keys)-1)))); ; s = (s + 1) & (len(w.keys) - 1) {
		if w.refs[s] == nil {
			return s, false
		}
		if w.keys[s] == key {
			return s, true
		}
	}
}

// commonText holds what ordinary logs are full of: windows made of its groups
// would stop the search all the time.
const commonText = ` the and for with not from this that will have been are was has all can use using used to of in on is it as at be by or an if no
 info warning error debug failed failure running loading loaded checkpoint model step epoch loss memory usage time tokens throughput batch size
 device devices cuda kernel tensor torch python site-packages lib file line module import return call function value values default config
 configuration operator operation operations implementation collected passed skipped warnings test tests session starts training validation
 shape dtype float16 bfloat16 float32 int64 size layer layers attention forward backward graph capture captured capturing stream process rank
 worker server request requests response version running pending waiting finished completed successfully initialization initialized started
 downloading installing building compiling cache cached path name number total average latency speedup milliseconds seconds percent gib mib
 traceback most recent last exception runtime running in out access address invalid found result results autotuning block_size num_warps
 num_stages best safetensors weights shard data dataset number of parameters learning rate [torch.size([ torch.float16 utils.py engine.py
 core.py runner.py __init__.py the default path falling back longer than usual access operation running current previous
 2026-03-02 10:12:13.456789 2025 2024 100% 0.0123 [00:00<00:01, 12.34it/s] ======== -------- ________ ........ ######## |  | > ===> ** `

// commonness counts the groups of commonText, by their hash.
func (g *gates) commonness() *[1 << markBits]uint8 {
	var n [1 << markBits]uint8
	text := append([]byte(commonText), make([]byte, slack)...)
	for i := range commonText {
		if h := g.hash(word(text, i)); n[h] < 255 {
			n[h]++
		}
	}
	return &n
}

// add chooses the window of t: one that is there already if possible, else the
// one whose groups are least common. Its marks begin at bit shift.
func (g *gates) add(w *windows, shift int, t string, ref int, common *[1 << markBits]uint8) {
	pad := append([]byte(t), make([]byte, slack)...)
	best, bestCost, place := 0, -1, 0
	for i := 0; i+w.width <= len(t); i++ {
		s, known := w.find(word(pad, i))
		if known {
			best, place = i, s
			break
		}
		cost := 0
		for d := range stride {
			cost += int(common[g.hash(word(pad, i+d))])
		}
		if bestCost < 0 || cost < bestCost {
			best, bestCost, place = i, cost, s
		}
	}
	w.keys[place] = word(pad, best) & w.mask
	w.refs[place] = append(w.refs[place], ref)
	for d := range stride {
		g.marks[g.hash(word(pad, best+d))] |= 1 << (shift + d)
	}
}

// next returns the first window that starts in b[from:end] and ends before end,
// and its refs; -1 if there is none. b must be readable slack bytes beyond end.
func (g *gates) next(b []byte, from, end int) (int, []int) {
	const four = 4 * stride
	p := from + stride - 1
	for ; p+four <= end; p += four { // text without a mark costs one branch
		w := (*[four - stride + slack]byte)(b[p:])
		marks := uint32(g.marks[g.hash(binary.LittleEndian.Uint64(w[:]))]) |
			uint32(g.marks[g.hash(binary.LittleEndian.Uint64(w[stride:]))])<<8 |
			uint32(g.marks[g.hash(binary.LittleEndian.Uint64(w[2*stride:]))])<<16 |
			uint32(g.marks[g.hash(binary.LittleEndian.Uint64(w[3*stride:]))])<<24
		for marks != 0 {
			k := bits.TrailingZeros32(marks) / 8
			if i, refs := g.around(b, p+k*stride, end, uint8(marks>>(8*k))); i >= 0 {
				return i, refs
			}
			marks &^= 0xff << (8 * k)
		}
	}
	for ; p < end; p += stride {
		if i, refs := g.around(b, p, end, g.marks[g.hash(word(b, p))]); i >= 0 {
			return i, refs
		}
	}
	return -1, nil
}

// around returns the first window that has the group at b[p:], with these marks,
// among its first ones and ends before end, and its refs, those of both widths; -1
// if there is none.
func (g *gates) around(b []byte, p, end int, marks uint8) (int, []int) {
	for d := stride - 1; d >= 0 && marks != 0; d-- {
		var refs []int
		if marks>>d&1 != 0 && p-d+wideWidth <= end {
			refs = g.wide.at(b, p-d)
		}
		if marks>>(stride+d)&1 != 0 && p-d+g.narrow.width <= end {
			if more := g.narrow.at(b, p-d); refs == nil {
				refs = more
			} else {
				refs = slices.Concat(refs, more)
			}
		}
		if refs != nil {
			return p - d, refs
		}
	}
	return -1, nil
}

// at returns the refs of the window at b[i:], nil if there is none.
func (w *windows) at(b []byte, i int) []int {
	if s, ok := w.find(word(b, i)); ok {
		return w.refs[s]
	}
	return nil
}
