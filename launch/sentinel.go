package launch

import (
	"bytes"
	"fmt"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A signal that was sent to zlexec alone must be forwarded; one that went to the
// whole process group (a terminal's Ctrl-C, kill -PGID, timeout, scancel with
// proctrack/linuxproc) has reached the command already and must not be sent
// twice. Nothing in the siginfo tells the two apart. So a sentinel, a process
// that does nothing, sits in the same group and tree with all signals blocked:
// what is pending there went to the command as well.
//
// It is forked without exec, because a second Go start costs a millisecond of
// CPU, and a helper program may not be there. That is sound only because the
// child calls nothing but raw system calls with every signal blocked: it never
// enters Go's scheduler, allocates, or grows its stack.

// sentinel is the process; pid 0 means that there is none.
type sentinel struct {
	pid    int
	before int    // the one that it replaced, 0 for none
	seen   uint64 // which signals of before's are known
}

const sentinelName = "zlexec-sentinel\x00" // 15 bytes and a NUL: all that the kernel keeps

// newSentinel forks one. Without one (no process left to fork) signals are told
// apart by si_code alone. The calling thread must be locked, since the sentinel
// ends with the thread that forked it.
func newSentinel() sentinel {
	old := setMask(^uint64(0))
	pid := forkSentinel(uintptr(unix.Getpid()))
	setMask(old)
	return sentinel{pid: pid}
}

//go:norace
//go:nosplit
func forkSentinel(parent uintptr) int {
	pid, _, errno := syscall.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	if errno != 0 {
		return 0
	}
	if pid != 0 {
		return int(pid)
	}
	_, _, _ = syscall.RawSyscall(unix.SYS_PRCTL, unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0)
	if ppid, _, _ := syscall.RawSyscall(unix.SYS_GETPPID, 0, 0, 0); ppid != parent {
		_, _, _ = syscall.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0) // zlexec ended before the line above
	}
	_, _, _ = syscall.RawSyscall(unix.SYS_PRCTL, unix.PR_SET_NAME, uintptr(unsafe.Pointer(unsafe.StringData(sentinelName))), 0)
	// The caller's files must be closed when the command closes them.
	closeFrom(0)
	for {
		_, _, _ = syscall.RawSyscall6(unix.SYS_PPOLL, 0, 0, 0, 0, 0, 0)
	}
}

// closeFrom closes all descriptors from first on.
//
//go:norace
//go:nosplit
func closeFrom(first uintptr) {
	if _, _, errno := syscall.RawSyscall(unix.SYS_CLOSE_RANGE, first, ^uintptr(0)>>32, 0); errno != 0 {
		for fd := first; fd < 4096; fd++ { // before Linux 5.9
			_, _, _ = syscall.RawSyscall(unix.SYS_CLOSE, fd, 0, 0)
		}
	}
}

// received returns the set of signals that reached the group since the last call
// (bit n-1 for signal n), and replaces the sentinel by a fresh one if there were
// any, since pending signals cannot be taken back. ok is false when there is no
// sentinel.
//
// The one before is kept and looked at too: slurmstepd (proctrack/linuxproc) reads
// /proc for each signal, milliseconds before it sends it, and so signals the
// sentinel that was there then. A cancelled step gets CONT and TERM that far apart.
func (s *sentinel) received() (set uint64, ok bool) {
	set, ok = waiting(s.pid)
	if !ok {
		return 0, false
	}
	late, _ := waiting(s.before)
	late &^= s.seen
	if set == 0 {
		s.seen |= late
		return late, true
	}
	next := newSentinel() // first the new one: no moment without
	reap(s.before)
	*s = sentinel{pid: next.pid, before: s.pid, seen: set}
	return set | late, true
}

// waiting returns the signals that a process has pending; ok is false for none
// that could be looked at.
func waiting(pid int) (set uint64, ok bool) {
	if pid == 0 {
		return 0, false
	}
	return signalSet(pid, "ShdPnd")
}

// signalSet returns a set of signals that /proc/PID/status names (proc(5)), bit n-1
// for signal n.
func signalSet(pid int, key string) (set uint64, ok bool) {
	status := readProc(fmt.Sprintf("/proc/%d/status", pid))
	_, rest, found := bytes.Cut(status, []byte("\n"+key+":\t"))
	if !found || len(rest) < 16 {
		return 0, false
	}
	set, err := strconv.ParseUint(string(rest[:16]), 16, 64)
	return set, err == nil
}

// kill ends the sentinels without waiting for that.
func (s *sentinel) kill() {
	for _, pid := range []int{s.pid, s.before} {
		if pid > 0 { // 0 would be this whole group
			_ = unix.Kill(pid, unix.SIGKILL)
		}
	}
}

// end kills the sentinels and reaps them.
func (s *sentinel) end() {
	reap(s.pid)
	reap(s.before)
	*s = sentinel{}
}

// reap kills a child and waits for it.
func reap(pid int) {
	if pid == 0 {
		return
	}
	_ = unix.Kill(pid, unix.SIGKILL)
	for {
		if _, err := unix.Wait4(pid, nil, 0, nil); err != unix.EINTR {
			return
		}
	}
}
