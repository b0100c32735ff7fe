package main

import (
	"math/rand/v2"
	"path/filepath"
	"slices"
	"time"
)

// startUp times "true" bare and under everything, in a new order every round.
func (b *bench) startUp() error {
	subjects := b.starters(b.found["true"])
	samples := map[string][]float64{}
	r := rand.New(rand.NewPCG(1, 2))
	const warm = 5
	for round := range b.rounds + warm {
		order := slices.Clone(subjects)
		r.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		for _, s := range order {
			p, err := start(s.argv, b.env, b.null, b.null, b.null)
			if err != nil {
				return err
			}
			e, err := p.wait()
			if err != nil {
				return err
			}
			if round >= warm {
				samples[s.name] = append(samples[s.name], ms(e.wall))
			}
		}
	}
	for _, s := range subjects {
		b.StartUp = append(b.StartUp, row{Name: s.name, Values: map[string]spread{"wall_ms": spreadOf(samples[s.name])}})
	}
	return nil
}

// starters are the ways to run a command whose start is compared; the tool alone is
// among them, as the yardstick for a reading.
func (b *bench) starters(command ...string) []subject {
	s := []subject{{"bare", command}}
	s = append(s, b.wrap("env", "env", nil, command...)...)
	s = append(s, b.wrap("timeout", "timeout", []string{"60"}, command...)...)
	s = append(s, b.wrap("tini", "tini", []string{"-s", "--"}, command...)...)
	s = append(s, b.wrap("dumb-init", "dumb-init", []string{"--"}, command...)...)
	s = append(s, b.wrap("go-exec", "go-exec", nil, command...)...)
	s = append(s, b.wrap("go-child", "go-child", nil, command...)...)
	s = append(s, b.zlexecs(command...)...)
	return append(s, subject{"nvidia-smi (fake)", []string{b.found["nvidia-smi"], "--query-gpu=index,uuid,name", "--format=csv"}})
}

func (b *bench) zlexecs(command ...string) []subject {
	record := "--record " + filepath.Join(b.dir, "record.jsonl")
	return []subject{
		b.zl("zlexec --exec", "--exec", command...),
		b.zl("zlexec, telemetry off", "--telemetry off", command...),
		b.zl("zlexec, scan none", "--telemetry off --scan none", command...),
		b.zl("zlexec, record", "--telemetry off "+record, command...),
		b.zl("zlexec, telemetry on", "", command...),
		b.zl("zlexec, all", record, command...),
	}
}

// memory takes the peak of resident memory of every kind of run: the short ones, a long
// stream, and one line that does not end.
func (b *bench) memory() error {
	stream, line := "10000000000", "1000000000"
	if b.short {
		stream, line = "256000000", "64000000"
	}
	subjects := append(b.zlexecs(b.found["sleep"], "0.1")[1:],
		b.zl("zlexec, "+stream+" bytes of log", "--telemetry off", b.self, "produce", stream),
		b.zl("zlexec, one line of "+line+" bytes", "--telemetry off", b.self, "line", line),
		b.zl("zlexec, both streams scanned", "--telemetry off --scan both", b.self, "produce", line))
	for _, s := range subjects {
		p, err := start(s.argv, b.env, b.null, b.null, b.null)
		if err != nil {
			return err
		}
		kib := p.peak(time.Millisecond)
		if _, err := p.wait(); err != nil {
			return err
		}
		if kib == 0 {
			continue // over, or the command, before it was seen
		}
		b.Memory = append(b.Memory, row{Name: s.name, Values: map[string]spread{"peak_mib": spreadOf([]float64{float64(kib) / 1024})}})
	}
	return nil
}
