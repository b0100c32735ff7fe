package launch

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// settle is how long a signal waits before it is forwarded: a sender that goes
	// through a group's processes one by one needs a moment to reach the sentinel too.
	settle = 10 * time.Millisecond
	// stepSettle is the same for slurmstepd, which with proctrack/linuxproc goes
	// through the processes of all tasks of a step on the node, while those that it
	// woke take its CPU: of 32 tasks on 2 CPUs, 10 ms were too short for one.
	stepSettle = time.Second
	// guardDelay is how old a command must be to get a sentinel: one that ends
	// before costs a quarter of a start less. A signal to the whole group in that
	// time reaches the command twice, unless a terminal sent it.
	guardDelay = 2 * time.Millisecond
	// releaseDelay separates a command that closed its output and works on from
	// one that is just ending.
	releaseDelay = 50 * time.Millisecond
	// leftPoll is how often, in ms, it is looked whether what --timeout ends is gone:
	// nobody tells of processes that are not one's own children.
	leftPoll = 20
	// stuckTime is waited after SIGKILL. A process stuck in a driver does not
	// die of it, and a run with --timeout must end all the same.
	stuckTime = 10 * time.Second
)

// supervisor waits for the command and stands in for it towards its caller: it
// passes signals on, stops when the command stops, and ends it on time.
type supervisor struct {
	pid      int
	signals  *signals
	sentinel sentinel
	relays   []*relay
	quiet    bool // nothing will be said at the end, so outputs may be given up

	guardAt  time.Time
	guarded  bool      // the sentinel has been started
	pending  []arrival // signals not yet forwarded or dropped
	decideAt time.Time
	received uint64 // every signal that came to zlexec, bit n-1 for n
	yieldAt  time.Time

	timeout, grace  time.Duration
	termAt, killAt  time.Time
	giveUpAt        time.Time
	targets         []process
	timedOut, stuck bool
	ended           bool
	status          unix.WaitStatus
	usage           unix.Rusage
}

// run returns when the command has ended, or was given up after --timeout.
func (s *supervisor) run() {
	if s.timeout > 0 {
		s.termAt = time.Now().Add(s.timeout)
	}
	s.guardAt = time.Now().Add(guardDelay)
	for s.reap(); !s.over(); s.reap() {
		poll := []unix.PollFd{{Fd: int32(s.signals.r), Events: unix.POLLIN}}
		var idle []*relay
		for _, r := range s.relays {
			if r.idle() {
				idle = append(idle, r)
				poll = append(poll, unix.PollFd{Fd: int32(r.fd), Events: unix.POLLIN})
			}
		}
		_, _ = unix.Poll(poll, s.sleep())
		for i, r := range idle {
			r.look(poll[1+i].Revents, s.signals.wake)
		}
		for _, a := range s.signals.read() {
			s.arrive(a)
		}
		s.act(time.Now())
	}
}

// over reports whether the wait has ended: after --timeout, when nothing is left of
// what it ends.
func (s *supervisor) over() bool {
	return s.stuck || s.ended && !(s.timedOut && slices.ContainsFunc(s.targets, process.alive))
}

// sleep returns the milliseconds until the next thing is due, -1 for none.
func (s *supervisor) sleep() int {
	ms := -1
	if s.ended {
		ms = leftPoll
	}
	for _, t := range []time.Time{s.guardAt, s.decideAt, s.yieldAt, s.termAt, s.killAt, s.giveUpAt} {
		if t.IsZero() {
			continue
		}
		// Rounded up: waking early would only spin.
		if d := int(max(0, time.Until(t)+time.Millisecond-1) / time.Millisecond); ms < 0 || d < ms {
			ms = d
		}
	}
	return ms
}

// due reports whether *t has come, and clears it then.
func due(t *time.Time, now time.Time) bool {
	if t.IsZero() || now.Before(*t) {
		return false
	}
	*t = time.Time{}
	return true
}

func (s *supervisor) act(now time.Time) {
	if due(&s.guardAt, now) {
		for _, a := range s.signals.read() { // what came before there was a sentinel
			s.arrive(a)
		}
		s.sentinel, s.guarded = newSentinel(), true
	}
	if due(&s.decideAt, now) {
		s.decide(now)
	}
	if due(&s.yieldAt, now) && s.quiet {
		for _, r := range s.relays {
			if r.finished() {
				release(r.dst)
			}
		}
	}
	if due(&s.termAt, now) {
		s.timedOut = true
		root, _ := readStat(s.pid)
		s.targets = descendants([]process{root.process})
		signalAll(s.targets, unix.SIGTERM)
		signalAll(s.targets, unix.SIGCONT) // a stopped process does not see TERM
		s.killAt = now.Add(s.grace)
	}
	if due(&s.killAt, now) {
		s.targets = descendants(s.targets)
		signalAll(s.targets, unix.SIGKILL)
		s.giveUpAt = now.Add(stuckTime)
	}
	s.stuck = due(&s.giveUpAt, now)
}

// wake makes run look at its relays; any goroutine may call it.
func (s *signals) wake() { _, _ = unix.Write(s.w, make([]byte, siginfoSize)) }

func (s *supervisor) arrive(a arrival) {
	switch {
	case a.sig == 0: // wake
		s.yieldAt = time.Now().Add(releaseDelay)
		return
	case a.sig == unix.SIGCHLD && a.code > 0: // news of a child: reap looks
		return
	case a.sig == unix.SIGWINCH:
		for _, r := range s.relays {
			r.resize()
		}
	}
	// The kernel drops a stop that waits when CONT comes, and the other way round,
	// in the sentinel too: an older one of the two says nothing any more.
	if isStop(a.sig) {
		s.drop(func(p arrival) bool { return p.sig == unix.SIGCONT })
	} else if a.sig == unix.SIGCONT {
		s.drop(func(p arrival) bool { return isStop(p.sig) })
	}
	s.received |= bit(a.sig)
	a.unguarded = !s.guarded
	a.due = time.Now().Add(a.settle())
	s.pending = append(s.pending, a)
	s.schedule()
}

// settle returns how long the signal waits. A step tracked by its cgroup, which has
// "slurm" in its path then, is signalled by its first process alone: nothing is to be
// waited for. A sender outside this PID namespace, as of a step in a container, has
// no number.
func (a arrival) settle() time.Duration {
	if a.code > 0 || os.Getenv("SLURM_JOB_ID") == "" || bytes.Contains(readProc("/proc/self/cgroup"), []byte("slurm")) {
		return settle
	}
	if a.pid == 0 || string(readProc(fmt.Sprintf("/proc/%d/comm", a.pid))) == "slurmstepd\n" {
		return stepSettle
	}
	return settle
}

// schedule sets decideAt to when the first pending signal is due.
func (s *supervisor) schedule() {
	s.decideAt = time.Time{}
	for _, a := range s.pending {
		if s.decideAt.IsZero() || a.due.Before(s.decideAt) {
			s.decideAt = a.due
		}
	}
}

// drop forgets pending signals.
func (s *supervisor) drop(which func(arrival) bool) { s.pending = slices.DeleteFunc(s.pending, which) }

// isStop reports whether the signal is one by which a terminal stops a job.
func isStop(sig syscall.Signal) bool {
	return sig == unix.SIGTSTP || sig == unix.SIGTTIN || sig == unix.SIGTTOU
}

func bit(sig syscall.Signal) uint64 { return 1 << (uint(sig) - 1) }

// decide forwards what zlexec alone received and is due, and drops what the group
// received.
func (s *supervisor) decide(now time.Time) {
	group, ok := s.sentinel.received()
	s.drop(func(a arrival) bool {
		toGroup := group&bit(a.sig) != 0
		if !ok || a.unguarded {
			// The terminal signals groups, a process mostly one pid. But a hangup
			// (HUP, CONT) goes to the leader of the session alone, which zlexec may be.
			toGroup = a.code > 0 && a.sig != unix.SIGHUP && a.sig != unix.SIGCONT
		}
		due := !now.Before(a.due)
		switch {
		case toGroup || !due:
		case s.ended: // its pid may be another's
			signalAll(s.targets, a.sig)
		default:
			_ = unix.Kill(s.pid, a.sig)
		}
		return toGroup || due
	})
	s.schedule()
}

// reap takes the command's change of state, if there is one. The command is
// waited for here only, so that its pid stays its own until then.
func (s *supervisor) reap() {
	if s.ended {
		return
	}
	var ws unix.WaitStatus
	var usage unix.Rusage
	pid, err := unix.Wait4(s.pid, &ws, unix.WNOHANG|unix.WUNTRACED, &usage)
	switch {
	case err == unix.EINTR:
		s.reap()
	case pid != s.pid:
	case ws.Stopped():
		s.mirror(ws.StopSignal())
	default:
		s.ended, s.status, s.usage = true, ws, usage
	}
}

// mirror stops zlexec as the command was stopped, so that the shell sees its job
// stop, and returns when the job goes on.
func (s *supervisor) mirror(sig syscall.Signal) {
	// The command has stopped: sending it the same again would stop it once more
	// after "fg". The rest is decided now, while the sentinel still shows it.
	s.drop(func(a arrival) bool { return isStop(a.sig) })
	s.decide(time.Now().Add(stepSettle))
	if sig != unix.SIGSTOP {
		setDefault(sig)
		defer s.signals.handle(sig)
	}
	// In an orphaned group the kernel drops TSTP, TTIN and TTOU here as it does
	// for any process; then zlexec goes on waiting.
	raise(sig)
}
