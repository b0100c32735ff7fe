package launch

import (
	"syscall"

	"github.com/flagos-ai/zlexec/classify"
)

// Exit codes of a command whose output named a device error. They rise with
// the severity, so that the highest over a Slurm step's tasks is the worst,
// and are clear of the codes of pytest (0-5), sysexits (64-78) and shells.
const (
	ExitRecoverable = 80
	ExitPoisoned    = 81
	ExitFatal       = 82
)

// Mode says which classes decide when the command exits 0.
type Mode int

const (
	// Normal: only fatal does. A script that swallows a device failure must not
	// report its numbers, but a handled fallback is normal.
	Normal Mode = iota
	// Strict: every class does.
	Strict
	// Lenient: none does.
	Lenient
)

// ClassCode returns the exit code of a class, 0 for none.
func ClassCode(c classify.Class) int {
	switch c {
	case classify.Recoverable:
		return ExitRecoverable
	case classify.Poisoned:
		return ExitPoisoned
	case classify.Fatal:
		return ExitFatal
	}
	return 0
}

// verdict is how zlexec ends: by a signal, else with a code.
type verdict struct {
	code    int
	signal  syscall.Signal // 0 for none
	decided bool           // a marker decided the code
}

// judge applies section 3 of the contract.
func judge(o outcome, class classify.Class, mode Mode) verdict {
	sig, code := o.signal(), o.status.ExitStatus()
	if sig != 0 {
		code = 128 + int(sig)
	}
	own := verdict{code: code, signal: sig}
	marked := verdict{code: ClassCode(class), decided: true}
	switch {
	case o.someoneStopped():
		return own
	case o.timedOut || o.stuck:
		if class >= classify.Poisoned {
			return marked
		}
		return verdict{code: ExitTimeout}
	case class == classify.None:
		return own
	case code != 0:
		return marked
	case mode == Strict, mode == Normal && class == classify.Fatal:
		return marked
	}
	return own
}
