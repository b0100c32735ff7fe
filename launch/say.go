package launch

import (
	"fmt"
	"strings"

	"golang.org/x/sys/unix"
)

// say writes one line of zlexec's own to stderr in a single write, so that it
// stays whole beside the lines of other ranks. A message that cannot be written
// is lost on purpose: it must not change what the command's caller sees.
func say(format string, args ...any) {
	line := strings.ReplaceAll(fmt.Sprintf(format, args...), "\n", " ")
	writeAll(2, []byte("zlexec: "+line+"\n"))
}

func complain(format string, args ...any) { say("error: "+format, args...) }
func warn(format string, args ...any)     { say("warning: "+format, args...) }

// writeAll writes all of b, waiting where the file does not block (the caller
// may have set O_NONBLOCK on a descriptor that it shares with us).
func writeAll(fd int, b []byte) error {
	for len(b) > 0 {
		n, err := unix.Write(fd, b)
		if n > 0 {
			b = b[n:]
		}
		switch err {
		case nil, unix.EINTR:
		case unix.EAGAIN:
			_, _ = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}, -1)
		default:
			return err
		}
	}
	return nil
}
