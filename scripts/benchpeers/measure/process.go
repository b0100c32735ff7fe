package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// process is a started command.
type process struct {
	argv  []string
	pid   int
	began time.Time
}

// ended is what is known of a command when it is over. ownCPU is the process's own
// time, allCPU adds that of every process it waited for.
type ended struct {
	wall           time.Duration // from before its start until it was seen to be over
	ownCPU, allCPU time.Duration
}

// start runs argv[0], a path, with these descriptors 0, 1 and 2. ForkExec is the
// cheapest start there is in Go (vfork and a shared address space), and it returns
// only after the exec, so the pid is the program's from then on.
func start(argv, env []string, in, out, errs *os.File) (*process, error) {
	p := &process{argv: argv, began: time.Now()}
	pid, err := syscall.ForkExec(argv[0], argv, &syscall.ProcAttr{
		Env: env, Files: []uintptr{in.Fd(), out.Fd(), errs.Fd()},
		Sys: &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL},
	})
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", argv[0], err)
	}
	p.pid = pid
	return p, nil
}

// wait waits for the end. A command that fails would give a fast, worthless number, so
// it is an error.
func (p *process) wait() (ended, error) {
	var e ended
	for {
		err := unix.Waitid(unix.P_PID, p.pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return e, fmt.Errorf("wait for %s: %w", p.argv[0], err)
		}
		break
	}
	e.wall = time.Since(p.began)
	e.ownCPU = p.ownCPU()
	var status syscall.WaitStatus
	var usage syscall.Rusage
	for {
		_, err := syscall.Wait4(p.pid, &status, 0, &usage)
		if err == syscall.EINTR {
			continue
		}
		if err != nil {
			return e, fmt.Errorf("reap %s: %w", p.argv[0], err)
		}
		break
	}
	e.allCPU = time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
	if !status.Exited() || status.ExitStatus() != 0 {
		return e, fmt.Errorf("%s ended with status %#x instead of 0: run it by hand", strings.Join(p.argv, " "), int(status))
	}
	return e, nil
}

// comm is the name that the kernel shows for the program.
func (p *process) comm() []byte {
	name := filepath.Base(p.argv[0])
	return []byte(name[:min(len(name), 15)])
}

// ownCPU reads a zombie's own time (proc(5), utime and stime in ticks of 10 ms): what
// wait4 reports has the children's in it. A wrapper that had nothing to do and became
// the command has spent none.
func (p *process) ownCPU() time.Duration {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.pid))
	end := bytes.LastIndexByte(stat, ')')
	if err != nil || end < 0 || !bytes.HasSuffix(stat[:end], append([]byte("("), p.comm()...)) {
		return 0
	}
	fields := bytes.Fields(stat[end+1:])
	if len(fields) < 13 {
		return 0
	}
	user, _ := strconv.Atoi(string(fields[11]))
	system, _ := strconv.Atoi(string(fields[12]))
	return time.Duration(user+system) * 10 * time.Millisecond
}

// peak follows a process's high-water mark of resident memory until it ends. What
// wait4 reports is of no use: it starts from the size of the process that forked. Once
// the program has become another, its memory is that one's and isn't counted.
func (p *process) peak(every time.Duration) (kib int) {
	name := fmt.Sprintf("/proc/%d/status", p.pid)
	for {
		status, err := os.ReadFile(name)
		if err == nil && !bytes.HasPrefix(status, fmt.Appendf(nil, "Name:\t%s\n", p.comm())) {
			return kib
		}
		_, rest, found := bytes.Cut(status, []byte("VmHWM:"))
		if err != nil || !found { // a zombie has no memory
			return kib
		}
		if fields := bytes.Fields(rest); len(fields) > 0 {
			if n, err := strconv.Atoi(string(fields[0])); err == nil {
				kib = max(kib, n)
			}
		}
		time.Sleep(every)
	}
}
