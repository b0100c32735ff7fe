package launch

import (
	"os/signal"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// What the caller had ignored and blocked, noted before the Go runtime starts.
// Package state, because the code that writes it runs before any Go code does
// (entry_amd64.s, entry_arm64.s). inheritedKnown is 0 where the binary was
// linked without that entry.
var (
	inheritedIgnored uint64 // bit n-1 for signal n
	inheritedMask    uint64
	inheritedKnown   int32
)

// inherit puts the caller's ignored and blocked signals back in force, for the
// command to inherit, and returns what undoes the blocking. SIGCHLD is never passed on ignored: a
// shell so started cannot wait for its own children.
func inherit() (undo func()) {
	if inheritedKnown == 0 {
		return func() {}
	}
	for sig := syscall.Signal(1); sig <= 64; sig++ {
		if inheritedIgnored&bit(sig) != 0 && caughtOrPipe(sig) && sig != unix.SIGCHLD {
			// Not our own sigaction: before exec the runtime gives each signal
			// that it handles its default action back, unless it is told.
			signal.Ignore(sig)
		}
	}
	if inheritedMask == 0 {
		return func() {}
	}
	runtime.LockOSThread() // the mask is this thread's
	old := setMask(inheritedMask)
	return func() {
		setMask(old)
		runtime.UnlockOSThread()
	}
}

func caughtOrPipe(sig syscall.Signal) bool { return caught(sig) || sig == unix.SIGPIPE }
