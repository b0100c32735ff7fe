package launch

import (
	"encoding/binary"
	"fmt"
	"slices"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Signals are caught with a handler of our own instead of os/signal, which
// hides who sent a signal, cannot catch signal 34, and costs a thread hand-over
// for each of the fifty signals at every start (measured: 0.6 to 4.5 ms for all
// of them, against 13 µs here). The handler writes the first 32 bytes of the
// siginfo to a pipe and nothing else; the loop in wait.go reads it.

// siginfoPipe is the pipe's write end. It is package state because a signal
// handler has no argument to carry it.
var siginfoPipe int32

// siginfoEntry returns the addresses of the assembly handler and of the way
// back from it (0 where the kernel brings its own).
func siginfoEntry() (handler, restorer uintptr)

const siginfoSize = 32 // signo, errno, code, padding, pid, uid: all that we look at

// arrival is one signal that this process received.
type arrival struct {
	sig  syscall.Signal
	code int32 // si_code: above 0 the kernel made it, else a process sent it
	pid  int32 // the sender, when a process sent it

	unguarded bool      // it came before there was a sentinel
	due       time.Time // when it is forwarded, unless the group got it
}

// signals holds the caught signals.
type signals struct {
	r, w    int
	ignored []syscall.Signal // those that the caller had ignored
}

// kernelSigaction is struct sigaction as rt_sigaction(2) takes it on 64-bit Linux.
type kernelSigaction struct {
	handler  uintptr
	flags    uint64
	restorer uintptr
	mask     uint64
}

const (
	sigDefault = 0
	sigIgnore  = 1

	saSiginfo  = 0x4
	saRestorer = 0x04000000
	saOnStack  = 0x08000000 // Go runs its threads on small stacks: the handler needs the signal stack
	saRestart  = 0x10000000 // Go's own code does not expect EINTR from every call
)

// caught reports whether zlexec catches the signal. Left alone are what cannot
// be caught (KILL, STOP), what the Go runtime needs for itself (the synchronous
// faults, URG for preemption, 32 and 33 for thread-wide calls), and PIPE: a
// write of our own raises it, and the command gets its own from its own write.
func caught(s syscall.Signal) bool {
	switch s {
	case unix.SIGKILL, unix.SIGSTOP, unix.SIGILL, unix.SIGTRAP, unix.SIGBUS, unix.SIGFPE, unix.SIGSEGV,
		unix.SIGSYS, unix.SIGURG, unix.SIGPIPE, 32, 33:
		return false
	}
	return s >= 1 && s <= 64
}

// catch starts to receive every signal, except those that the caller ignores:
// they must stay ignored until the command is started, which inherits that.
func catch() (*signals, error) {
	var p [2]int
	if err := unix.Pipe2(p[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
		return nil, fmt.Errorf("make the signal pipe: %w", err)
	}
	s := &signals{r: p[0], w: p[1]}
	siginfoPipe = int32(s.w)
	for sig := syscall.Signal(1); sig <= 64; sig++ {
		if !caught(sig) {
			continue
		}
		if sig != unix.SIGCHLD && disposition(sig) == sigIgnore {
			s.ignored = append(s.ignored, sig)
			continue
		}
		s.handle(sig)
	}
	return s, nil
}

// catchIgnored also receives what the caller had ignored: the command may have
// installed a handler of its own since.
func (s *signals) catchIgnored() {
	for _, sig := range s.ignored {
		s.handle(sig)
	}
}

// stopAgain lets a terminal stop this process as any other: once the command has
// ended, there is none whose stops would be mirrored.
func (s *signals) stopAgain() {
	for _, sig := range []syscall.Signal{unix.SIGTSTP, unix.SIGTTIN, unix.SIGTTOU} {
		action := uintptr(sigDefault)
		if slices.Contains(s.ignored, sig) {
			action = sigIgnore
		}
		sigaction(sig, &kernelSigaction{handler: action}, nil)
	}
}

func (s *signals) handle(sig syscall.Signal) {
	handler, restorer := siginfoEntry()
	sa := kernelSigaction{handler: handler, flags: saSiginfo | saOnStack | saRestart, restorer: restorer}
	if restorer != 0 {
		sa.flags |= saRestorer
	}
	sigaction(sig, &sa, nil)
}

// read returns the signals that arrived since the last call; it does not block.
func (s *signals) read() []arrival {
	var list []arrival
	buf := make([]byte, 64*siginfoSize)
	for {
		n, err := unix.Read(s.r, buf)
		if err == unix.EINTR {
			continue
		}
		for b := buf[:max(n, 0)]; len(b) >= siginfoSize; b = b[siginfoSize:] {
			list = append(list, arrival{
				sig:  syscall.Signal(binary.NativeEndian.Uint32(b)),
				code: int32(binary.NativeEndian.Uint32(b[8:])),
				pid:  int32(binary.NativeEndian.Uint32(b[16:])),
			})
		}
		if n < len(buf) {
			return list
		}
	}
}

func sigaction(sig syscall.Signal, sa, old *kernelSigaction) {
	// Cannot fail: the numbers are valid, and the pointers are ours.
	_, _, _ = syscall.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(sig), uintptr(unsafe.Pointer(sa)), uintptr(unsafe.Pointer(old)), 8, 0, 0)
}

// disposition returns sigDefault, sigIgnore or a handler's address.
func disposition(sig syscall.Signal) uintptr {
	var old kernelSigaction
	sigaction(sig, nil, &old)
	return old.handler
}

// setDefault gives the signal its default action.
func setDefault(sig syscall.Signal) { sigaction(sig, &kernelSigaction{handler: sigDefault}, nil) }

// setMask sets this thread's blocked signals and returns the old ones.
func setMask(mask uint64) (old uint64) {
	const sigSetmask = 2
	_, _, _ = syscall.RawSyscall6(unix.SYS_RT_SIGPROCMASK, sigSetmask, uintptr(unsafe.Pointer(&mask)), uintptr(unsafe.Pointer(&old)), 8, 0, 0)
	return old
}

// dieBy ends this process by the signal that ended the command, so that the
// caller's wait status is what it would be bare. It leaves no core of its own,
// and returns only if the signal did not kill.
func dieBy(sig syscall.Signal) {
	_ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) // also where core_pattern is a pipe, which ignores RLIMIT_CORE
	setDefault(sig)
	setMask(0)
	raise(sig)
}

// raise sends the signal to this very thread, so that it has worked before the
// call returns: kill(2) may choose another thread, which takes it later, and by
// then the disposition may be another one.
func raise(sig syscall.Signal) { _ = unix.Tgkill(unix.Getpid(), unix.Gettid(), sig) }
