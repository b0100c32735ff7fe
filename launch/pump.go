package launch

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// handOver gives the source of a relay to a process of its own, when the command
// has ended and a process that it left behind still holds the other end. Bare,
// such a process would go on to write to the caller's file; without a reader it
// would die of SIGPIPE. The pump stays in the process group, so that what ends
// the group ends it too, and ignores what a terminal sends, as a background job
// without a shell would.
func (r *relay) handOver() {
	conn, err := r.src.SyscallConn()
	if err != nil {
		return
	}
	null, err := unix.Open("/dev/null", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	defer unix.Close(null)
	_ = conn.Control(func(fd uintptr) {
		_ = unix.SetNonblock(int(fd), false)
		old := setMask(^uint64(0))
		defer setMask(old)
		// Failing leaves what a plain pipe would do; there is nobody left to tell.
		_, _ = syscall.ForkExec(selfExe, []string{pumpArg0}, &syscall.ProcAttr{
			Files: []uintptr{fd, uintptr(null), uintptr(r.dst)}, Env: []string{"GOMAXPROCS=1"}})
	})
}

// pumpMain copies 0 to 2 until the last writer has closed its end or the reader
// has gone.
func pumpMain() {
	buf := make([]byte, pipeAtom)
	for {
		n, err := unix.Read(0, buf)
		if err == unix.EINTR {
			continue
		}
		if n <= 0 || writeAll(2, buf[:n]) != nil {
			os.Exit(0)
		}
	}
}
