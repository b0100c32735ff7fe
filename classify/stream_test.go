package classify

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// split writes data to a fresh scanner in portions of 1 to most bytes.
func split(c Config, data []byte, most int, rnd *rand.Rand) Result {
	s := New(c)
	w := s.Stream("log")
	for len(data) > 0 {
		n := min(len(data), 1+rnd.IntN(most))
		w.Write(data[:n])
		data = data[n:]
	}
	return s.Result()
}

// FuzzSplit asserts that it does not matter how output is split into writes, not
// even around the scanner's own bounds.
func FuzzSplit(f *testing.F) {
	for i, seed := range []string{
		"GPU error: an illegal memory\naccess was encountered\n", "\x1b[1mGPU error: x\x1b[0m\r\n", "failed: 507048\nheartbeat lost",
		"=== FAILURES ===\n____ test_a ____\n    x\nE   GPU error: x\n=== 1 failed in 1s ===\n", `a\nb\nunspecified launch failure`,
	} {
		f.Add([]byte(seed), uint32(1<<i*3000), uint64(i))
	}
	f.Fuzz(func(t *testing.T, data []byte, fill uint32, seed uint64) {
		c := testConfig()
		c.Explain, c.Pytest = true, true
		pad := bytes.Repeat([]byte("filler text "), int(fill%(300<<10))/12)
		whole := append(append(append([]byte(nil), data...), pad...), data...)
		rnd := rand.New(rand.NewPCG(seed, 1))
		want := split(c, whole, len(whole)+1, rnd)
		for _, most := range []int{7, 5000, 70000} {
			if most < len(whole)/20000 {
				continue
			}
			if got := split(c, whole, most, rnd); !reflect.DeepEqual(got, want) {
				t.Fatalf("portions up to %d bytes: %+v, in one piece: %+v", most, got, want)
			}
		}
	})
}

func TestMemoryIsBounded(t *testing.T) {
	for name, portion := range map[string]string{
		"endless line":   strings.Repeat("x", 64<<10),
		"endless escape": "\x1b]" + strings.Repeat("y", 64<<10),
		"many matches":   strings.Repeat("GPU error: x GPU error: unspecified launch failure ", 1000),
		"many failures":  strings.Repeat("a/b.py::test_x FAILED\n_____ test_y _____\nGPU error: x\n", 1000),
		"carriage":       strings.Repeat("\r", 64<<10),
	} {
		c := testConfig()
		c.Pytest = true
		s := New(c)
		w := s.Stream("stderr")
		fmt.Fprint(w, "=== FAILURES ===\n")
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		for range 100 {
			w.Write([]byte(portion))
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 8<<20 {
			t.Errorf("%s: %d bytes held", name, grown)
		}
		s.Result()
	}
}

func TestNoAllocationPerWrite(t *testing.T) {
	s := New(testConfig())
	w := s.Stream("stderr")
	line := []byte(strings.Repeat("ordinary text of a run ", 40) + "\n")
	w.Write(line)
	if n := testing.AllocsPerRun(2000, func() { w.Write(line) }); n > 0.5 {
		t.Errorf("%v allocations per write", n)
	}
}

func TestGatesFindEveryWindow(t *testing.T) {
	for _, texts := range [][]string{
		{"alpha beta", "gamma_delta", "error 12", "zzzzzzzz"},
		{"alpha beta", "507011", "error 12", "::test"},
		{"alpha beta", "oom", "error 12", "zz z"},
	} {
		gatesFind(t, texts)
	}
	// Windows of two widths that start at one place.
	g := newGates([]string{"error 12", "error"}, []int{0, 1})
	if i, refs := g.next(pad([]byte("  an error 123"))[:14+slack], 0, 14); i != 5 || len(refs) != 2 {
		t.Errorf("got %d %v, want both texts at 5", i, refs)
	}
}

func gatesFind(t *testing.T, texts []string) {
	t.Helper()
	g := newGates(texts, []int{0, 1, 2, 3})
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		b := make([]byte, 20000)
		for i := range b {
			b[i] = byte(' ' + rnd.IntN(90))
		}
		at, which := rnd.IntN(len(b)-20), rnd.IntN(len(texts))
		copy(b[at:], strings.ToUpper(texts[which]))
		padded := append(b, make([]byte, slack)...)
		found := false
		for i := 0; ; i++ {
			var refs []int
			if i, refs = g.next(padded, i, len(b)); i < 0 {
				break
			}
			found = found || i >= at && i < at+len(texts[which]) && refs[0] == which
		}
		if !found {
			t.Fatalf("%q at %d was not found", texts[which], at)
		}
	}
}

func TestStreamsFromSeveralGoroutines(t *testing.T) {
	s := New(testConfig())
	var wg sync.WaitGroup
	for _, name := range []string{"stdout", "stderr"} {
		w := s.Stream(name)
		wg.Go(func() {
			for range 500 {
				fmt.Fprintf(w, "%s: GPU error: x\n", name)
			}
		})
	}
	wg.Wait()
	if r := s.Result(); r.Counts.Recoverable != 1000 {
		t.Errorf("got %+v", r.Counts)
	}
}
