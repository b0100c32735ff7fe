package launch

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// lockWait bounds the wait for a record file's lock. 64 ranks that end
	// together need milliseconds on a local file system; a network lock server
	// that is busy takes seconds, and one that is down never answers.
	lockWait = 10 * time.Second
	// lockPoll is between two tries: flock(2) has no deadline of its own.
	lockPoll = 2 * time.Millisecond
)

// AppendLine appends one line to a file that other processes and other hosts
// append to as well. O_APPEND alone is not atomic on network file systems, so
// the file is locked meanwhile (flock, which Linux passes on to NFS servers);
// where no lock can be had the line is still written in one piece. A line that
// could not be written whole is taken back, so that no reader finds half of one.
func AppendLine(path string, line []byte) (err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o666)
	if errors.Is(err, os.ErrPermission) { // a pipe, or a file that may only be written
		f, err = os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o666)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }() // close tells what NFS could not write
	locked := lock(int(f.Fd()))
	start, seekErr := f.Seek(0, io.SeekEnd)
	regular := seekErr == nil
	line = append(line, '\n')
	if regular && start > 0 && torn(f, start) {
		line = append([]byte{'\n'}, line...)
	}
	n, err := f.Write(line)
	if err != nil && n > 0 && regular && locked {
		_ = f.Truncate(start)
	}
	return err
}

// torn reports whether the file ends in the middle of a line, as after a crash.
func torn(f *os.File, size int64) bool {
	last := make([]byte, 1)
	n, err := f.ReadAt(last, size-1)
	return n == 1 && err == nil && last[0] != '\n'
}

// lock waits for the file's lock and reports whether it was had.
func lock(fd int) bool {
	for deadline := time.Now().Add(lockWait); ; time.Sleep(lockPoll) {
		err := unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return true
		}
		if err != unix.EWOULDBLOCK && err != unix.EINTR || time.Now().After(deadline) {
			return false
		}
	}
}

// ExpandPath fills in {rank}, {job_id}, {step_id}, {hostname} and {pid} of a file
// name, so that each rank can have a file of its own. Outside a scheduler a rank
// is 0, and ids are "none".
func ExpandPath(pattern string, s *Scheduler, hostname string, pid int) (string, error) {
	known := map[string]string{"rank": "0", "job_id": "none", "step_id": "none", "hostname": hostname, "pid": strconv.Itoa(pid)}
	if s != nil {
		for name, v := range map[string]*string{"rank": s.Rank, "job_id": s.JobID, "step_id": s.StepID} {
			if v != nil {
				known[name] = *v
			}
		}
	}
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(pattern, "{")
		b.WriteString(before)
		if !found {
			return b.String(), nil
		}
		name, after, closed := strings.Cut(rest, "}")
		text, ok := known[name]
		if !closed || !ok {
			return "", fmt.Errorf("%q: {%s} is no placeholder: use {rank}, {job_id}, {step_id}, {hostname} or {pid}", pattern, name)
		}
		b.WriteString(text)
		pattern = after
	}
}
