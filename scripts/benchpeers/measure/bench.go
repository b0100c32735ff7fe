package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// bench holds what the sections share: where things are, and what came out.
type bench struct {
	options
	env   []string
	null  *os.File
	self  string            // this program, which also writes
	found map[string]string // peers by name; absent ones are missing
	result
}

func newBench(o options) (*bench, error) {
	b := &bench{options: o, found: map[string]string{}}
	var err error
	if b.self, err = os.Executable(); err != nil {
		return nil, err
	}
	if b.null, err = os.OpenFile(os.DevNull, os.O_RDWR, 0); err != nil {
		return nil, err
	}
	for _, name := range []string{"go-exec", "go-child"} {
		b.found[name] = filepath.Join(o.peers, name)
	}
	b.found["zlexec"] = o.zlexec
	b.Peers = map[string]*string{}
	for _, name := range []string{"env", "timeout", "tini", "dumb-init", "cat", "tee", "true", "sleep"} {
		b.Peers[name] = nil
		if path, err := exec.LookPath(name); err == nil {
			b.found[name] = path
			b.Peers[name] = version(path)
		}
	}
	for _, name := range []string{"true", "sleep", "cat"} {
		if b.found[name] == "" {
			return nil, fmt.Errorf("%s is not on PATH: install coreutils", name)
		}
	}
	b.Peers["zlexec"] = version(o.zlexec)
	b.Machine = machine()
	b.Short, b.Rounds = o.short, o.rounds
	return b, b.fakeTool()
}

// fakeTool puts an nvidia-smi that answers at once first on the PATH of everything
// measured, and takes away what would steer zlexec.
func (b *bench) fakeTool() error {
	dir := filepath.Join(b.dir, "bin")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	csv := "index, uuid, name, clocks.current.sm [MHz], clocks.current.memory [MHz], temperature.gpu, power.draw [W], utilization.gpu [%]\n" +
		"0, GPU-5d1c20aa-0b7e-4f7b-9a51-3f2f6f0f7c11, NVIDIA H200, 1980 MHz, 3201 MHz, 33, 118.20 W, 0 %\n"
	list := "index, uuid, name, compute_cap\n0, GPU-5d1c20aa-0b7e-4f7b-9a51-3f2f6f0f7c11, NVIDIA H200, 9.0\n"
	for name, text := range map[string]string{"readings.csv": csv, "list.csv": list} {
		if err := os.WriteFile(filepath.Join(b.dir, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	// Shell built-ins alone: a second program would be the larger part of its time.
	script := "#!/bin/sh\ncase \"$*\" in *compute_cap*) f=list.csv ;; *) f=readings.csv ;; esac\n" +
		"while IFS= read -r line; do printf '%s\\n' \"$line\"; done <'" + b.dir + "'/$f\n"
	if err := os.WriteFile(filepath.Join(dir, "nvidia-smi"), []byte(script), 0o755); err != nil {
		return err
	}
	b.found["nvidia-smi"] = filepath.Join(dir, "nvidia-smi")
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "ZLEXEC_") && !strings.HasPrefix(kv, "ZL_") && !strings.HasPrefix(kv, "PATH=") {
			b.env = append(b.env, kv)
		}
	}
	b.env = append(b.env, "PATH="+dir+":"+os.Getenv("PATH"))
	return nil
}

// subject is one way of running a command; without its program it is left out.
type subject struct {
	name string
	argv []string
}

// wrap makes the subject in which a peer wraps the command.
func (b *bench) wrap(name, peer string, flags []string, command ...string) []subject {
	if b.found[peer] == "" {
		return nil
	}
	return []subject{{name, append(append([]string{b.found[peer]}, flags...), command...)}}
}

// zl makes the subject in which zlexec wraps the command.
func (b *bench) zl(name, flags string, command ...string) subject {
	argv := append([]string{b.zlexec}, strings.Fields("-q --backend cuda "+flags)...)
	return subject{name, append(append(argv, "--"), command...)}
}
