package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// logText makes about size bytes of what a benchmark prints on stderr: timestamps,
// progress, warnings, a traceback now and then, words that occur in device errors,
// but no device error.
func logText(size int) []byte {
	r := rand.New(rand.NewPCG(7, 7))
	shapes := []func(*bytes.Buffer){
		func(b *bytes.Buffer) {
			fmt.Fprintf(b, "2026-12-01 10:%02d:%02d,%03d INFO bench.runner: shape=(%d, %d) dtype=torch.float16 latency %.4f ms, %.1f GB/s\n",
				r.IntN(60), r.IntN(60), r.IntN(1000), 1<<r.IntN(14), 1<<r.IntN(14), r.Float64()*9, r.Float64()*4000)
		},
		func(b *bytes.Buffer) {
			fmt.Fprintf(b, "\rautotune: %3d%%|%-20s| %d/200 [00:%02d<00:%02d, %.2fit/s]", r.IntN(100), "########"[:r.IntN(9)], r.IntN(200), r.IntN(60), r.IntN(60), r.Float64()*50)
		},
		func(b *bytes.Buffer) {
			fmt.Fprintf(b, "[W1201 10:%02d:%02d.%06d Context.cpp:%d] Warning: cuBLAS workspace of %d MiB is allocated on device cuda:%d (function alloc)\n",
				r.IntN(60), r.IntN(60), r.IntN(1000000), r.IntN(900), r.IntN(64), r.IntN(8))
		},
		func(b *bytes.Buffer) {
			fmt.Fprintf(b, "  File \"/opt/app/kernels/attention.py\", line %d, in forward\n    out = kernel[grid](q, k, v, BLOCK_M=%d)\n", r.IntN(900), 16<<r.IntN(4))
		},
		func(b *bytes.Buffer) {
			fmt.Fprintf(b, "step %d loss %.6f grad_norm %.4f lr %.2e tokens/s %d no error\n", r.IntN(100000), r.Float64()*4, r.Float64(), r.Float64()/1000, r.IntN(200000))
		},
	}
	var b bytes.Buffer
	for b.Len() < size {
		shapes[[]int{0, 0, 0, 0, 1, 1, 2, 3, 4, 4, 4}[r.IntN(11)]](&b)
	}
	return b.Bytes()[:size]
}

// produce writes n bytes of log text to stderr, 64 KiB at a time, which is what a pipe
// holds: the producer must not be what is measured.
func produce(n int64) error { return pour(logText(4<<20), n) }

// produceLine writes one line of n bytes that never ends.
func produceLine(n int64) error { return pour(bytes.Repeat([]byte("0123456789abcdef"), 1<<16), n) }

func pour(text []byte, n int64) error {
	for n > 0 {
		for rest := text; len(rest) > 0 && n > 0; {
			wrote, err := os.Stderr.Write(rest[:min(int64(len(rest)), 64<<10, n)])
			if err != nil {
				return err
			}
			rest, n = rest[wrote:], n-int64(wrote)
		}
	}
	return nil
}

// stampLines writes n lines to stderr, 2 ms apart, each with the time at which it is
// written.
func stampLines(n int64) error {
	for i := range n {
		time.Sleep(2 * time.Millisecond)
		line := fmt.Appendf(nil, "%d line %d: latency 0.4210 ms, 2841.3 GB/s\n", now(), i)
		if _, err := os.Stderr.Write(line); err != nil {
			return err
		}
	}
	return nil
}

// now is the clock that all processes of a machine share, in nanoseconds.
func now() int64 {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		exit(fmt.Errorf("read the clock: %w", err))
	}
	return t.Nano()
}
