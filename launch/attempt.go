package launch

import (
	"io"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// attempt is one start of the command and all that zlexec must do to stand in
// for it.
type attempt struct {
	argv, environ    []string
	scanOut, scanErr bool
	stream           func(name string) io.Writer // where the relayed bytes are looked at
	timeout, grace   time.Duration
	quiet            bool // outputs may be given up when the command closes them
	again            bool // another attempt may follow: it needs stdin and the inherited files
}

// outcome is how the command ended.
type outcome struct {
	status   unix.WaitStatus
	usage    unix.Rusage
	duration time.Duration
	timedOut bool
	stuck    bool   // it did not even die of SIGKILL
	received uint64 // signals that came to zlexec meanwhile, bit n-1 for n
}

// run starts the command and waits for it. An error means that it did not start.
// The calling goroutine is locked to its thread from here on: the command dies
// with that thread (Pdeathsig), so it must be one that lives as long as zlexec.
func (a attempt) run() (outcome, error) {
	runtime.LockOSThread()
	io, err := plumb(a.scanOut, a.scanErr, a.stream)
	if err != nil {
		return outcome{}, err
	}
	unblock := inherit()
	sigs, err := catch()
	if err != nil {
		return outcome{}, err
	}
	started := time.Now()
	pid, err := fork(a.argv, a.environ, io.files)
	unblock()
	if err != nil {
		return outcome{}, err
	}
	s := supervisor{pid: pid, signals: sigs, relays: io.relays,
		quiet: a.quiet, timeout: a.timeout, grace: a.grace}
	sigs.catchIgnored()
	for _, fd := range io.close {
		_ = unix.Close(fd)
	}
	if !a.again {
		closeInherited()
		release(io.idle()...)
	}
	for _, r := range io.relays {
		r.pid = pid
	}
	s.run()
	sigs.stopAgain()
	s.sentinel.kill() // it dies while the relays drain
	for _, r := range io.relays {
		r.finish(sigs.wake)
		if r.left && !s.stuck {
			r.handOver()
		}
	}
	s.sentinel.end()
	return outcome{s.status, s.usage, time.Since(started), s.timedOut, s.stuck, s.received}, nil
}

// idle returns those of descriptors 0 and 1 that zlexec itself does not write to.
func (s *stdio) idle() []int {
	for _, r := range s.relays {
		if r.dst == 1 {
			return []int{0}
		}
	}
	return []int{0, 1}
}

// someoneStopped reports whether the command died of a signal by which a person
// or a scheduler stops a job, and which came to zlexec or its group.
func (o outcome) someoneStopped() bool {
	switch sig := o.status.Signal(); sig {
	case unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT:
		return o.received&bit(sig) != 0 && !o.timedOut
	}
	return false
}

// signal returns the signal that ended the command, 0 for none.
func (o outcome) signal() syscall.Signal {
	if o.status.Signaled() {
		return o.status.Signal()
	}
	return 0
}
