package launch

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// process names a process for good: a pid alone may be given to another one.
type process struct {
	pid   int
	start string // starttime of /proc/PID/stat
}

type procStat struct {
	process
	state      string
	ppid, pgrp int
}

func readStat(pid int) (procStat, bool) {
	data := readProc(fmt.Sprintf("/proc/%d/stat", pid))
	// The name in parentheses may hold anything, also blanks and parentheses.
	_, rest, _ := bytes.Cut(data[bytes.LastIndexByte(data, ')')+1:], []byte(" "))
	f := bytes.Fields(rest)
	if len(f) < 20 {
		return procStat{}, false
	}
	ppid, _ := strconv.Atoi(string(f[1]))
	pgrp, _ := strconv.Atoi(string(f[2]))
	return procStat{process{pid, string(f[19])}, string(f[0]), ppid, pgrp}, true
}

// descendants returns those of the processes that still live, and all below them that
// are still in this process's group. Others in the group are not touched: the tasks
// of a Slurm step share one.
func descendants(roots []process) []process {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	children := map[int][]procStat{}
	var queue, list []process
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if st, ok := readStat(pid); ok {
			children[st.ppid] = append(children[st.ppid], st)
			if slices.Contains(roots, st.process) {
				queue, list = append(queue, st.process), append(list, st.process)
			}
		}
	}
	group := unix.Getpgrp()
	for ; len(queue) > 0; queue = queue[1:] {
		for _, st := range children[queue[0].pid] {
			if slices.Contains(list, st.process) {
				continue
			}
			queue = append(queue, st.process)
			if st.pgrp == group {
				list = append(list, st.process)
			}
		}
	}
	return list
}

// alive reports whether the process still runs. A zombie does not: whoever should
// wait for it may never do so.
func (p process) alive() bool {
	st, ok := readStat(p.pid)
	return ok && st.start == p.start && st.state != "Z" && st.state != "X"
}

func signalAll(list []process, sig syscall.Signal) {
	for _, p := range list {
		if p.alive() {
			_ = unix.Kill(p.pid, sig)
		}
	}
}
