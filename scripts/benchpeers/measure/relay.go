package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// relayed is one way from a command's stderr to its reader. A filter reads a pipe that
// the command writes; the others start the command themselves.
type relayed struct {
	name   string
	filter []string
	wrap   func(command ...string) subject
}

func (b *bench) relays() []relayed {
	s := []relayed{{name: "cat", filter: []string{b.found["cat"]}}}
	if b.found["tee"] != "" {
		s = append(s, relayed{name: "tee /dev/null", filter: []string{b.found["tee"], os.DevNull}})
	}
	return append(s,
		relayed{name: "zlexec, scanning", wrap: func(c ...string) subject { return b.zl("", "--telemetry off", c...) }},
		relayed{name: "zlexec, scan none", wrap: func(c ...string) subject { return b.zl("", "--telemetry off --scan none", c...) }})
}

// run starts the command behind this relay, with its output going to out. The second
// process, if any, is the command, which must be waited for as well.
func (v relayed) run(b *bench, out *os.File, command ...string) (relay, writer *process, err error) {
	if v.wrap != nil {
		relay, err = start(v.wrap(command...).argv, b.env, b.null, b.null, out)
		return relay, nil, err
	}
	if v.filter == nil {
		relay, err = start(command, b.env, b.null, b.null, out)
		return relay, nil, err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	defer r.Close()
	defer w.Close()
	if writer, err = start(command, b.env, b.null, b.null, w); err != nil {
		return nil, nil, err
	}
	began := writer.began
	if relay, err = start(v.filter, b.env, r, out, b.null); err != nil {
		return nil, nil, err
	}
	relay.began = began
	return relay, writer, nil
}

// relay measures the throughput of stderr from one producer.
func (b *bench) relay() error {
	size, rounds := int64(1e9), 7
	if b.short {
		size, rounds = 64e6, 5
	}
	for _, dest := range []string{os.DevNull, filepath.Join(b.dir, "relayed")} {
		label := " to a file"
		if dest == os.DevNull {
			label = " to /dev/null"
		}
		speed, cpu := map[string][]float64{}, map[string][]float64{}
		for round := range rounds + 1 { // the first is for warming up
			for _, v := range b.relays() {
				e, err := b.relayOnce(v, dest, size)
				if err != nil {
					return err
				}
				if round > 0 {
					speed[v.name] = append(speed[v.name], float64(size)/1e6/e.wall.Seconds())
					cpu[v.name] = append(cpu[v.name], e.ownCPU.Seconds()*1e9/float64(size))
				}
			}
		}
		for _, v := range b.relays() {
			b.Relay = append(b.Relay, row{Name: v.name + label, Values: map[string]spread{"mb_per_s": spreadOf(speed[v.name]), "cpu_s_per_gb": spreadOf(cpu[v.name])}})
		}
	}
	return nil
}

func (b *bench) relayOnce(v relayed, dest string, size int64) (ended, error) {
	out, err := os.OpenFile(dest, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return ended{}, err
	}
	defer out.Close()
	relay, writer, err := v.run(b, out, b.self, "produce", strconv.FormatInt(size, 10))
	if err != nil {
		return ended{}, err
	}
	e, err := relay.wait()
	if err == nil && writer != nil {
		_, err = writer.wait()
	}
	if err != nil || dest == os.DevNull {
		return e, err
	}
	info, err := out.Stat()
	if err == nil && info.Size() != size {
		err = fmt.Errorf("%s relayed %d bytes of %d", v.name, info.Size(), size)
	}
	return e, err
}

// lineDelay measures how long a single line takes from the command to the reader.
func (b *bench) lineDelay() error {
	blocks, lines := 4, int64(300)
	if b.short {
		blocks, lines = 2, 250
	}
	ways := append([]relayed{{name: "bare pipe"}}, b.relays()[:len(b.relays())-1]...)
	delays := map[string][]float64{}
	for range blocks {
		for _, v := range ways {
			d, err := b.delays(v, lines)
			if err != nil {
				return err
			}
			delays[v.name] = append(delays[v.name], d...)
		}
	}
	for _, v := range ways {
		b.LineDelay = append(b.LineDelay, row{Name: v.name, Values: map[string]spread{"delay_ms": spreadOf(delays[v.name])}})
	}
	return nil
}

func (b *bench) delays(v relayed, lines int64) (ms []float64, err error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	relay, writer, err := v.run(b, w, b.self, "lines", strconv.FormatInt(lines, 10))
	w.Close()
	if err != nil {
		return nil, err
	}
	fd, buf, rest := int(r.Fd()), make([]byte, 64<<10), []byte(nil)
	for {
		n, err := unix.Read(fd, buf) // not through Go's poller, whose wake-up would count
		at := now()
		if err == unix.EINTR {
			continue
		}
		if err != nil || n == 0 {
			break
		}
		rest = append(rest, buf[:n]...)
		for {
			line, more, found := bytes.Cut(rest, []byte("\n"))
			if !found {
				break
			}
			stamp, _, _ := bytes.Cut(line, []byte(" "))
			wrote, err := strconv.ParseInt(string(stamp), 10, 64)
			if err != nil {
				return nil, fmt.Errorf("%s changed a line: %q", v.name, line)
			}
			ms, rest = append(ms, float64(at-wrote)/float64(time.Millisecond)), more
		}
	}
	if _, err = relay.wait(); err == nil && writer != nil {
		_, err = writer.wait()
	}
	if err == nil && int64(len(ms)) != lines {
		err = fmt.Errorf("%s relayed %d lines of %d", v.name, len(ms), lines)
	}
	return ms, err
}
