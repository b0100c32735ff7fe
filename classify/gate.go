package classify

import (
	"encoding/binary"
	"math/bits"
)

// gates finds, in bytes that mostly hold none of them, windows of a fixed number
// of bytes cut from the rules' texts: the search of Wu and Manber, which looks at
// one group of three bytes and skips as far as no window can end. ASCII case is
// folded by clearing one bit, which merges some punctuation too: a hit is only
// the reason to look at a line.
type gates struct {
	width int // bytes of a window, 3 to maxWidth
	shift [1 << shiftBits]uint8
	keys  []uint64
	refs  [][]int // what a window stands for, beside keys
	mask  uint64
}

const (
	shiftBits = 14 // 16 KiB: stays in the first-level cache
	maxWidth  = 8  // a window is compared as one machine word
	fold32    = 0x00dfdfdf
	fold64    = 0xdfdfdfdfdfdfdfdf
	// slack is how many bytes past the searched ones must be readable.
	slack = 8
	// laneBlock bytes are searched by four cursors at once: the search waits for
	// one load after another, and four chains of loads overlap.
	laneBlock = 4096
	lanes     = 4
)

func trigram(b []byte, i int) uint32 {
	return (binary.LittleEndian.Uint32(b[i:]) & fold32) * 0x9E3779B1 >> (32 - shiftBits)
}

// slot is where a window's key is looked for first.
func (g *gates) slot(key uint64) int {
	return int(key * 0x9E3779B97F4A7C15 >> (64 - bits.Len(uint(len(g.keys)-1))))
}

// newGates builds the tables for texts in lower case; refs[i] belongs to texts[i].
func newGates(texts []string, refs []int) *gates {
	g := &gates{width: maxWidth}
	for _, t := range texts {
		g.width = min(g.width, len(t))
	}
	g.mask = ^uint64(0) >> (64 - 8*g.width) & fold64
	size := 64
	for size < 4*len(texts) {
		size *= 2
	}
	g.keys, g.refs = make([]uint64, size), make([][]int, size)
	for i := range g.shift {
		g.shift[i] = uint8(g.width - 2)
	}
	common := commonness()
	for i, t := range texts {
		g.add(t, refs[i], common)
	}
	return g
}

// commonText holds what ordinary logs are full of: windows made of its groups of
// three letters would stop the search all the time.
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

// commonness counts groups of three letters in commonText, by their hash.
func commonness() *[1 << shiftBits]uint8 {
	var n [1 << shiftBits]uint8
	text := append([]byte(commonText), make([]byte, slack)...)
	for i := range len(commonText) - 2 {
		if h := trigram(text, i); n[h] < 255 {
			n[h]++
		}
	}
	return &n
}

// add chooses the window of t: one that is there already if possible, else the
// one whose groups, above all the last, are least common.
func (g *gates) add(t string, ref int, common *[1 << shiftBits]uint8) {
	const lastWeight = 8 // the last group stops the search, the others only slow it
	pad := append([]byte(t), make([]byte, slack)...)
	sum, last := 0, g.width-3
	for j := range last {
		sum += int(common[trigram(pad, j)])
	}
	best, bestCost, bestSlot := 0, -1, 0
	for i := 0; i+g.width <= len(t); i++ {
		s, known := g.find(binary.LittleEndian.Uint64(pad[i:]) & g.mask)
		if known {
			best, bestSlot = i, s
			break
		}
		n := int(common[trigram(pad, i+last)])
		if cost := sum + n*lastWeight; bestCost < 0 || cost < bestCost {
			best, bestCost, bestSlot = i, cost, s
		}
		sum += n - int(common[trigram(pad, i)])
	}
	g.keys[bestSlot] = binary.LittleEndian.Uint64(pad[best:]) & g.mask
	g.refs[bestSlot] = append(g.refs[bestSlot], ref)
	for j := 0; j+3 <= g.width; j++ {
		h := trigram(pad, best+j)
		g.shift[h] = min(g.shift[h], uint8(g.width-3-j))
	}
}

// find returns the slot of key and whether it is there.
func (g *gates) find(key uint64) (int, bool) {
	for s := g.slot(key); ; s = (s + 1) & (len(g.keys) - 1) {
		if g.refs[s] == nil {
			return s, false
		}
		if g.keys[s] == key {
			return s, true
		}
	}
}

// at returns the refs of the window that starts at i, nil if none does.
func (g *gates) at(b []byte, i int) []int {
	if s, ok := g.find(binary.LittleEndian.Uint64(b[i:]) & g.mask); ok {
		return g.refs[s]
	}
	return nil
}

// next returns the first window that starts in b[from:end] and ends before end,
// and its refs; -1 if there is none. b must be readable slack bytes beyond end.
func (g *gates) next(b []byte, from, end int) (int, []int) {
	for end-from >= laneBlock+maxWidth {
		if g.any(b, from) {
			if i, refs := g.scan(b, from, from+laneBlock); i >= 0 {
				return i, refs
			}
		}
		from += laneBlock
	}
	return g.scan(b, from, end-g.width+1)
}

// scan returns the first window that starts in [from, stop).
func (g *gates) scan(b []byte, from, stop int) (int, []int) {
	tail := g.width - 3
	for p := from + tail; p < stop+tail; {
		s := int(g.shift[trigram(b, p)])
		if s == 0 {
			if refs := g.at(b, p-tail); refs != nil {
				return p - tail, refs
			}
			s = 1
		}
		p += s
	}
	return -1, nil
}

// any tells whether a window starts in the laneBlock bytes at from.
func (g *gates) any(b []byte, from int) bool {
	const quarter = laneBlock / lanes
	tail := g.width - 3
	p0 := from + tail
	p1, p2, p3 := p0+quarter, p0+2*quarter, p0+3*quarter
	e0, e1, e2, e3 := p1, p2, p3, p0+laneBlock
	b = b[:e3+slack]
	for p0 < e0 && p1 < e1 && p2 < e2 && p3 < e3 {
		s0, s1 := g.shift[trigram(b, p0)], g.shift[trigram(b, p1)]
		s2, s3 := g.shift[trigram(b, p2)], g.shift[trigram(b, p3)]
		if s0 == 0 || s1 == 0 || s2 == 0 || s3 == 0 {
			if g.hit(b, p0, s0, tail) || g.hit(b, p1, s1, tail) || g.hit(b, p2, s2, tail) || g.hit(b, p3, s3, tail) {
				return true
			}
			s0, s1, s2, s3 = max(s0, 1), max(s1, 1), max(s2, 1), max(s3, 1)
		}
		p0, p1, p2, p3 = p0+int(s0), p1+int(s1), p2+int(s2), p3+int(s3)
	}
	for _, r := range [lanes][2]int{{p0, e0}, {p1, e1}, {p2, e2}, {p3, e3}} {
		if i, _ := g.scan(b, r[0]-tail, r[1]-tail); i >= 0 {
			return true
		}
	}
	return false
}

func (g *gates) hit(b []byte, p int, shift uint8, tail int) bool {
	return shift == 0 && g.at(b, p-tail) != nil
}
