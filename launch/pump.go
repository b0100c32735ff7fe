package launch

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// handOver gives the source of a relay to a process of its own, when the command
// has ended and a process that it left behind still holds the other end. Bare,
// such a process would go on to write to the caller's file; without a reader it
// would die of SIGPIPE. The pump ends when the last writer has closed its end or the
// reader has gone. It takes no signal but KILL: what ends the writers ends it too,
// and a writer that ignores a signal, as under nohup, must not lose its reader by it.
func (r *relay) handOver() {
	conn, err := r.src.SyscallConn()
	if err != nil {
		return
	}
	_ = conn.Control(func(fd uintptr) {
		_ = unix.SetNonblock(int(fd), false)
		old := setMask(^uint64(0))
		defer setMask(old)
		// Failing leaves what a plain pipe would do; there is nobody left to tell.
		forkPump(fd, uintptr(r.dst), new([pipeAtom]byte), &unix.PollFd{Fd: 2, Events: unix.POLLOUT})
	})
}

const pumpName = "zlexec-pump\x00"

// forkPump forks it, as sentinel.go does, and with the same care: nothing but raw
// system calls. The buffers are the child's own from the fork on.
//
//go:norace
//go:nosplit
func forkPump(src, dst uintptr, buf *[pipeAtom]byte, poll *unix.PollFd) {
	pid, _, errno := syscall.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	if errno != 0 || pid != 0 {
		return
	}
	_, _, _ = syscall.RawSyscall(unix.SYS_PRCTL, unix.PR_SET_NAME, uintptr(unsafe.Pointer(unsafe.StringData(pumpName))), 0)
	_, _, _ = syscall.RawSyscall(unix.SYS_DUP3, src, 0, 0)
	if dst != 2 {
		_, _, _ = syscall.RawSyscall(unix.SYS_DUP3, dst, 2, 0)
	}
	_, _, _ = syscall.RawSyscall(unix.SYS_CLOSE, 1, 0, 0)
	closeFrom(3)
	for {
		n, _, errno := syscall.RawSyscall(unix.SYS_READ, 0, uintptr(unsafe.Pointer(buf)), pipeAtom)
		if errno == unix.EINTR {
			continue
		}
		if errno != 0 || n == 0 {
			_, _, _ = syscall.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
		}
		for from := uintptr(0); from < n; {
			m, _, errno := syscall.RawSyscall(unix.SYS_WRITE, 2, uintptr(unsafe.Pointer(buf))+from, n-from)
			switch errno {
			case 0:
				from += m
			case unix.EINTR:
			case unix.EAGAIN: // the caller's file does not block
				_, _, _ = syscall.RawSyscall6(unix.SYS_PPOLL, uintptr(unsafe.Pointer(poll)), 1, 0, 0, 0, 0)
			case unix.EPIPE:
				_, _, _ = syscall.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
			default: // a full disk loses these bytes alone, as for the writer itself
				from = n
			}
		}
	}
}
