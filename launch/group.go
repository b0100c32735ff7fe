package launch

import (
	"bytes"
	"fmt"
	"os"
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
	return procStat{process{pid, string(f[19])}, ppid, pgrp}, true
}

// descendants returns the process and all below it that are still in this
// process's group. Others in the group are not touched: the tasks of a Slurm
// step share one.
func descendants(root int) []process {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	children := map[int][]procStat{}
	var list []process
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if st, ok := readStat(pid); ok {
			children[st.ppid] = append(children[st.ppid], st)
			if pid == root {
				list = append(list, st.process)
			}
		}
	}
	group := unix.Getpgrp()
	for queue := []int{root}; len(queue) > 0; {
		for _, st := range children[queue[0]] {
			queue = append(queue, st.pid)
			if st.pgrp == group {
				list = append(list, st.process)
			}
		}
		queue = queue[1:]
	}
	return list
}

func signalAll(list []process, sig syscall.Signal) {
	for _, p := range list {
		if st, ok := readStat(p.pid); ok && st.start == p.start {
			_ = unix.Kill(p.pid, sig)
		}
	}
}
