package launch

import (
	"bytes"
	"errors"
	"io"
	"os"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// relayBuffer holds one read: the whole pipe, so that a full one needs one call.
	relayBuffer = pipeSize
	// portion is written and looked at before the next, while the reader takes it and
	// it is in the nearest cache: a fifth faster than the whole buffer at once.
	portion = 16 << 10
	// pipeAtom is what write(2) puts into a pipe in one piece (PIPE_BUF on
	// Linux): writers that share one pipe keep their lines whole up to it.
	pipeAtom = 4096
	// drainTime is waited for output of processes that the command left behind
	// (DESIGN.md, section 5: at most half a second).
	drainTime = 500 * time.Millisecond
)

// relay copies one output of the command to the caller's file: it writes first
// and looks at the bytes after that.
type relay struct {
	fd  int      // where the command's bytes come from
	src *os.File // the same, once there are any: see look
	dst int

	scan     io.Writer
	terminal bool
	pid      int           // the command
	done     chan struct{} // closed at the end of the copy
	left     bool          // the copy ended although a writer is left; valid after done
	dead     bool          // the reader went away
	pipe     bool          // dst is a pipe or a socket, which others may write to
}

// idle reports whether nothing was written yet.
func (r *relay) idle() bool { return r.src == nil && !r.finished() }

// look starts the copy when poll(2) says that there are bytes. An output on which
// nothing is ever written ends without a goroutine and the runtime's poller, which
// cost a short command as much as its own start.
func (r *relay) look(events int16, wake func()) {
	switch {
	case events&unix.POLLIN != 0:
		r.start(wake)
	case events != 0: // every writer has closed its end
		_ = unix.Close(r.fd)
		close(r.done)
		wake()
	}
}

func (r *relay) start(wake func()) {
	r.src = os.NewFile(uintptr(r.fd), "relay")
	go func() { // ends with finish
		r.run()
		wake()
	}()
}

// run copies until every writer has closed its end, or until a while after
// finish. It must not be called twice.
func (r *relay) run() {
	defer close(r.done)
	var st unix.Stat_t
	if unix.Fstat(r.dst, &st) == nil {
		r.pipe = st.Mode&unix.S_IFMT == unix.S_IFIFO || st.Mode&unix.S_IFMT == unix.S_IFSOCK
	}
	buf := make([]byte, relayBuffer)
	have := 0 // an unfinished line, held back while more of it is there to read
	for {
		n, err := r.src.Read(buf[have:])
		if n > 0 {
			have = r.pass(buf, have, n)
		}
		if err != nil {
			if errors.Is(err, os.ErrDeadlineExceeded) {
				have = r.rest(buf, have)
				r.left = true
			}
			r.write(buf[:have])
			return
		}
		if r.dead {
			// Closing our end gives the command what it would get bare: EPIPE,
			// or death by SIGPIPE. What is already in the pipe is still looked at.
			r.rest(buf, 0)
			_ = r.src.Close()
			return
		}
	}
}

// pass delivers buf[:have+n], of which the last n bytes are new, and returns how
// many bytes it moved to the front of buf to keep back.
func (r *relay) pass(buf []byte, have, n int) int {
	data := buf[:have+n]
	keep := 0
	if r.pipe && data[len(data)-1] != '\n' && len(data) < len(buf) && r.readable() > 0 {
		if nl := bytes.LastIndexByte(data, '\n'); len(data)-nl-1 < pipeAtom {
			keep = len(data) - nl - 1
		}
	}
	seen := have
	for from, n := 0, 0; from < len(data)-keep; from += n {
		n = r.piece(data[from : len(data)-keep])
		r.write(data[from : from+n])
		if to := from + n; to > seen {
			_, _ = r.scan.Write(data[seen:to])
			seen = to
		}
	}
	_, _ = r.scan.Write(data[seen:])
	return copy(buf, data[len(data)-keep:])
}

// piece returns how much of b is written at once: into a pipe whole lines, as long
// as they are no longer than what it takes in one piece.
func (r *relay) piece(b []byte) int {
	if !r.pipe || len(b) <= pipeAtom {
		return min(len(b), portion)
	}
	if nl := bytes.LastIndexByte(b[:pipeAtom], '\n'); nl >= 0 {
		return nl + 1
	}
	return pipeAtom
}

// write delivers one piece. A reader that went away ends the delivery; any other
// failure (a full disk, a file size limit) loses these bytes alone, as it would
// for the command itself.
func (r *relay) write(b []byte) {
	if len(b) > 0 && !r.dead && r.deliver(b) == unix.EPIPE {
		r.dead = true
	}
}

// deliver writes b. In the background of a terminal with "stty tostop" a command that
// ignores TTOU may write, and so must zlexec: the kernel looks at the writing thread.
func (r *relay) deliver(b []byte) error {
	if r.terminal && background(r.dst) && ignores(r.pid, unix.SIGTTOU) {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer setMask(setMask(^uint64(0)))
	}
	return writeAll(r.dst, b)
}

// background reports whether this process is in the background of the terminal.
func background(fd int) bool {
	group, err := unix.IoctlGetInt(fd, unix.TIOCGPGRP)
	return err == nil && group != unix.Getpgrp()
}

// ignores reports whether a process ignores or blocks the signal.
func ignores(pid int, sig syscall.Signal) bool {
	ignored, _ := signalSet(pid, "SigIgn")
	blocked, _ := signalSet(pid, "SigBlk")
	return (ignored|blocked)&bit(sig) != 0
}

// readable returns how many bytes wait in the source.
func (r *relay) readable() (n int) {
	if conn, err := r.src.SyscallConn(); err == nil {
		_ = conn.Control(func(fd uintptr) { n, _ = unix.IoctlGetInt(int(fd), unix.TIOCINQ) })
	}
	return n
}

// rest delivers what waits in the source now, and no more: a process that the
// command left behind may write for ever.
func (r *relay) rest(buf []byte, have int) int {
	conn, err := r.src.SyscallConn()
	if err != nil {
		return have
	}
	for left := r.readable(); left > 0; {
		n := 0
		_ = conn.Control(func(fd uintptr) { n, _ = unix.Read(int(fd), buf[have:min(len(buf), have+left)]) })
		if n <= 0 {
			break
		}
		left -= n
		have = r.pass(buf, have, n)
	}
	return have
}

// finish says that the command has ended, and waits for the copy.
func (r *relay) finish(wake func()) {
	if r.idle() {
		poll := []unix.PollFd{{Fd: int32(r.fd), Events: unix.POLLIN}}
		_, _ = unix.Poll(poll, 0)
		r.look(poll[0].Revents, wake)
	}
	if r.idle() { // a process that the command left behind may still write
		r.start(wake)
	}
	if r.finished() {
		return
	}
	_ = r.src.SetReadDeadline(time.Now().Add(drainTime))
	<-r.done
}

// finished reports whether the copy has ended.
func (r *relay) finished() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}

// resize carries the user's window size over to the command's terminal.
func (r *relay) resize() {
	if !r.terminal || r.finished() {
		return
	}
	if r.src == nil {
		copySize(r.dst, r.fd)
	} else if conn, err := r.src.SyscallConn(); err == nil {
		_ = conn.Control(func(fd uintptr) { copySize(r.dst, int(fd)) })
	}
}
