// Command measure times zlexec beside its peers, interleaved in one run. It is the
// compiled half of scripts/bench, which builds it and everything it needs. Called as
// "measure produce BYTES" or "measure lines N" it is the command that writes.
package main

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"time"
)

// options are what scripts/bench passes on.
type options struct {
	zlexec string // the binary under test
	peers  string // directory with go-exec and go-child
	dir    string // scratch directory; big files go here
	json   string // result file, empty for none
	short  bool
	rounds int // rounds of the start-up section
}

func main() {
	// The parent-death signal of every child goes by the thread that started it.
	runtime.LockOSThread()
	if len(os.Args) == 3 {
		n, err := strconv.ParseInt(os.Args[2], 10, 64)
		switch {
		case err != nil:
		case os.Args[1] == "produce":
			exit(produce(n))
		case os.Args[1] == "line":
			exit(produceLine(n))
		case os.Args[1] == "lines":
			exit(stampLines(n))
		}
	}
	var o options
	flag.StringVar(&o.zlexec, "zlexec", "", "binary under test")
	flag.StringVar(&o.peers, "peers", "", "directory of go-exec and go-child")
	flag.StringVar(&o.dir, "dir", "", "scratch directory")
	flag.StringVar(&o.json, "json", "", "result file")
	flag.BoolVar(&o.short, "short", false, "seconds instead of minutes")
	flag.IntVar(&o.rounds, "rounds", 0, "start-up rounds")
	flag.Parse()
	if o.rounds == 0 {
		o.rounds = 300
		if o.short {
			o.rounds = 60
		}
	}
	if o.rounds < 1 {
		exit(fmt.Errorf("--rounds %d: must be 1 or more", o.rounds))
	}
	limit := 20 * time.Minute
	if o.short {
		limit = 3 * time.Minute
	}
	// Children die with this process, so ending it ends everything.
	time.AfterFunc(limit, func() {
		exit(fmt.Errorf("not done after %v: a measured program hangs, or the machine is too busy", limit))
	})
	code, err := run(o)
	if err != nil {
		exit(err)
	}
	os.Exit(code)
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(2)
	}
	os.Exit(0)
}

// run makes all measurements and returns the exit code: 1 when the short form finds a
// target missed by a factor of two.
func run(o options) (int, error) {
	b, err := newBench(o)
	if err != nil {
		return 0, err
	}
	for _, section := range []struct {
		name string
		do   func() error
	}{
		{"start-up", b.startUp}, {"memory", b.memory}, {"relay", b.relay}, {"line delay", b.lineDelay}, {"64 at once", b.concurrent},
	} {
		fmt.Fprintf(os.Stderr, "bench: %s …\n", section.name)
		if err := section.do(); err != nil {
			return 0, fmt.Errorf("%s: %w", section.name, err)
		}
	}
	b.judge()
	b.print(os.Stdout)
	if o.json != "" {
		if err := b.write(o.json); err != nil {
			return 0, fmt.Errorf("write results: %w", err)
		}
	}
	return b.code(), nil
}
