package main

import (
	"time"

	"golang.org/x/sys/unix"
)

// atOnce is how many wrapped commands run together: the ranks of a well-filled node.
const atOnce = 64

// concurrent starts 64 wrapped commands on two processors and waits for all.
func (b *bench) concurrent() error {
	restore, err := twoProcessors()
	if err != nil {
		return err
	}
	defer restore()
	const nap = "0.3" // longer than 64 starts take, so that all are there together
	command := []string{b.found["sleep"], nap}
	subjects := append([]subject{{"bare", command}}, b.wrap("go-child", "go-child", nil, command...)...)
	subjects = append(subjects, b.wrap("timeout", "timeout", []string{"60"}, command...)...)
	subjects = append(subjects, b.zl("zlexec, telemetry off", "--telemetry off", command...), b.zl("zlexec, telemetry on", "", command...))
	rounds := 10
	if b.short {
		rounds = 2
	}
	wall, cpu := map[string][]float64{}, map[string][]float64{}
	for range rounds {
		for _, s := range subjects {
			w, c, err := b.together(s)
			if err != nil {
				return err
			}
			wall[s.name], cpu[s.name] = append(wall[s.name], ms(w)), append(cpu[s.name], ms(c))
		}
	}
	for _, s := range subjects {
		b.Concurrent = append(b.Concurrent, row{Name: s.name, Values: map[string]spread{"wall_ms": spreadOf(wall[s.name]), "cpu_ms": spreadOf(cpu[s.name])}})
	}
	return nil
}

func (b *bench) together(s subject) (wall, cpu time.Duration, err error) {
	began := time.Now()
	var all []*process
	for range atOnce {
		p, err := start(s.argv, b.env, b.null, b.null, b.null)
		if err != nil {
			return 0, 0, err
		}
		all = append(all, p)
	}
	for _, p := range all {
		e, err := p.wait()
		if err != nil {
			return 0, 0, err
		}
		cpu += e.allCPU
	}
	return time.Since(began), cpu, nil
}

// twoProcessors binds this thread, and so what it starts, to the first two processors
// it may use.
func twoProcessors() (restore func(), err error) {
	var all, two unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		return nil, err
	}
	for cpu := 0; cpu < len(all)*64 && two.Count() < 2; cpu++ {
		if all.IsSet(cpu) {
			two.Set(cpu)
		}
	}
	restore = func() {
		if err := unix.SchedSetaffinity(0, &all); err != nil {
			exit(err)
		}
	}
	return restore, unix.SchedSetaffinity(0, &two)
}
