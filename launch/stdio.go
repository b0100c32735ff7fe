package launch

import (
	"fmt"
	"io"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

// pipeSize is asked for each relay's pipe: fewer wake-ups for the same bytes.
// Unprivileged users may hold 64 MiB in all (pipe-user-pages-soft), which still
// is enough for 64 ranks with two pipes each.
const pipeSize = 256 << 10

// stdio is what the command gets as 0, 1 and 2, and what relays it.
type stdio struct {
	files  [3]uintptr
	relays []*relay
	close  []int // our copies of the command's ends, closed once it has them
}

// plumb decides which of the command's outputs go through zlexec. What is not
// scanned stays the caller's very file. What is scanned gets a terminal where it
// was one, else a pipe. Outputs that are one file share one relay, since two
// would lose the order between them.
func plumb(scanOut, scanErr bool, stream func(name string) io.Writer) (*stdio, error) {
	s := &stdio{files: [3]uintptr{0, 1, 2}}
	errTTY, outTTY := isTerminal(2), isTerminal(1)
	switch {
	case !scanOut && !scanErr:
		return s, nil
	case !errTTY && sameFile(1, 2), scanOut && scanErr && errTTY && outTTY && sameTerminal(1, 2):
		return s, s.join(stream("both"), errTTY, 2, 1, 2)
	}
	if scanOut {
		if err := s.join(stream("stdout"), outTTY, 1, 1); err != nil {
			return s, err
		}
	}
	if scanErr {
		return s, s.join(stream("stderr"), errTTY, 2, 2)
	}
	return s, nil
}

// join gives the command's descriptors fds one new file, and relays it to dst.
func (s *stdio) join(scan io.Writer, terminal bool, dst int, fds ...int) error {
	r := &relay{dst: dst, scan: scan, terminal: terminal, done: make(chan struct{})}
	var child int
	var err error
	if terminal {
		r.fd, child, err = openTerminal(dst)
	} else {
		r.fd, child, err = openPipe()
	}
	if err != nil {
		return fmt.Errorf("make a relay for descriptor %d: %w", dst, err)
	}
	for _, fd := range fds {
		s.files[fd] = uintptr(child)
	}
	s.close = append(s.close, child)
	s.relays = append(s.relays, r)
	return nil
}

// openPipe returns a pipe's read end, which the runtime's poller can wait for, and
// its write end, which must block as any command expects.
func openPipe() (source, child int, err error) {
	var p [2]int
	if err := unix.Pipe2(p[:], unix.O_CLOEXEC); err != nil {
		return 0, 0, err
	}
	_, _ = unix.FcntlInt(uintptr(p[1]), unix.F_SETPIPE_SZ, pipeSize) // refused: the default size works as well
	if err := unix.SetNonblock(p[0], true); err != nil {
		return 0, 0, err
	}
	return p[0], p[1], nil
}

// openTerminal returns a new terminal that looks like the one on fd. Only its
// output side is used. Newline translation is off in it: the user's terminal
// still does that, and twice would double the carriage returns.
func openTerminal(fd int) (source, child int, err error) {
	master, slave, err := pty.Open()
	if err != nil {
		return 0, 0, err
	}
	if t, err := unix.IoctlGetTermios(fd, unix.TCGETS); err == nil {
		t.Oflag &^= unix.OPOST
		t.Lflag &^= unix.ECHO
		_ = unix.IoctlSetTermios(int(slave.Fd()), unix.TCSETS, t)
	}
	child, err = unix.FcntlInt(slave.Fd(), unix.F_DUPFD_CLOEXEC, 3)
	_ = slave.Close()
	if err != nil {
		return 0, 0, err
	}
	raw, err := unix.FcntlInt(master.Fd(), unix.F_DUPFD_CLOEXEC, 3) // pty.Open's file is a blocking one
	_ = master.Close()
	if err != nil {
		return 0, 0, err
	}
	copySize(fd, raw)
	if err := unix.SetNonblock(raw, true); err != nil {
		return 0, 0, err
	}
	return raw, child, nil
}

// copySize gives the terminal "to" the window size of the terminal "from".
func copySize(from, to int) {
	if ws, err := unix.IoctlGetWinsize(from, unix.TIOCGWINSZ); err == nil {
		_ = unix.IoctlSetWinsize(to, unix.TIOCSWINSZ, ws)
	}
}

func isTerminal(fd int) bool {
	_, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	return err == nil
}

func sameTerminal(a, b int) bool {
	var x, y unix.Stat_t
	return unix.Fstat(a, &x) == nil && unix.Fstat(b, &y) == nil && x.Rdev == y.Rdev
}

// sameFile reports whether two descriptors share one open file, as after
// "2>&1". Two opens of one regular file have offsets of their own, and joining
// them would change what is written where.
func sameFile(a, b int) bool {
	const kcmpFile = 0
	pid := uintptr(unix.Getpid())
	r, _, errno := unix.Syscall6(unix.SYS_KCMP, pid, pid, kcmpFile, uintptr(a), uintptr(b), 0)
	if errno == 0 {
		return r == 0 || samePipe(a, b)
	}
	return samePipe(a, b) || appending(a, b) // kcmp(2) is missing or forbidden
}

// samePipe: opens of one pipe have no offset, so they are as good as one file.
func samePipe(a, b int) bool {
	var x, y unix.Stat_t
	if unix.Fstat(a, &x) != nil || unix.Fstat(b, &y) != nil {
		return false
	}
	kind := x.Mode & unix.S_IFMT
	return x.Dev == y.Dev && x.Ino == y.Ino && (kind == unix.S_IFIFO || kind == unix.S_IFSOCK)
}

// appending: neither do opens of one file for appending.
func appending(a, b int) bool {
	var x, y unix.Stat_t
	fa, err1 := unix.FcntlInt(uintptr(a), unix.F_GETFL, 0)
	fb, err2 := unix.FcntlInt(uintptr(b), unix.F_GETFL, 0)
	return err1 == nil && err2 == nil && fa&fb&unix.O_APPEND != 0 &&
		unix.Fstat(a, &x) == nil && unix.Fstat(b, &y) == nil && x.Dev == y.Dev && x.Ino == y.Ino
}
