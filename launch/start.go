package launch

import (
	"errors"
	"os"
	"slices"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/flagos-ai/zlexec/env"
)

// An own program inside this binary, chosen by argv[0] so that no word of the
// command line is taken from the user's commands: it sets LISTEN_PID to its own pid,
// then becomes the command.
const (
	listenArg0 = "zlexec-listen"
	selfExe    = "/proc/self/exe"
)

// Internal runs the own program if args name it and does not return, or returns
// false for an ordinary command line.
func Internal(args []string) bool {
	if len(args) < 3 || args[0] != listenArg0 {
		return false
	}
	environ := environ()
	for i, kv := range environ {
		if len(kv) > len("LISTEN_PID=") && kv[:len("LISTEN_PID=")] == "LISTEN_PID=" {
			environ[i] = "LISTEN_PID=" + strconv.Itoa(os.Getpid())
		}
	}
	err := execute(args[1], args[2:], environ)
	complain("%v", &StartError{args[2], err, ExitCannotExecute})
	os.Exit(ExitCannotExecute)
	return true
}

// environ returns the environment as execve handed it over. os.Environ drops
// duplicates and entries without "=", which a bare command would get.
func environ() []string {
	data := readProc("/proc/self/environ")
	if len(data) == 0 {
		return os.Environ()
	}
	var list []string
	for start, i := 0, 0; i < len(data); i++ {
		if data[i] == 0 {
			list = append(list, string(data[start:i]))
			start = i + 1
		}
	}
	return list
}

// readProc returns what a file under /proc says, or nothing. It asks the kernel
// directly: the os package would start the runtime's poller for it, at a tenth
// of the cost of a whole start.
func readProc(path string) []byte {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer unix.Close(fd)
	buf := make([]byte, 0, 4096)
	for {
		n, err := unix.Read(fd, buf[len(buf):cap(buf)])
		if err != nil && err != unix.EINTR || n == 0 {
			return buf
		}
		if buf = buf[:len(buf)+max(n, 0)]; len(buf) == cap(buf) {
			buf = slices.Grow(buf, cap(buf))
		}
	}
}

// execute replaces this process by the command; it returns only on failure. A
// file without a known format is a script for sh, as execvp(3) does it.
func execute(file string, argv, environ []string) error {
	defer inherit()()
	err := syscall.Exec(file, argv, environ)
	if errors.Is(err, unix.ENOEXEC) {
		err = syscall.Exec("/bin/sh", shellArgs(file, argv), environ)
	}
	return err
}

func shellArgs(file string, argv []string) []string {
	return append([]string{"/bin/sh", file}, argv[1:]...)
}

// fork starts the command with the given files as 0, 1 and 2, in this process's
// group and session, and killed when the calling thread ends. The thread must
// be locked, and must be the one that lives as long as zlexec.
func fork(argv, environ []string, files [3]uintptr) (pid int, err error) {
	attr := &syscall.ProcAttr{Env: environ, Files: files[:], Sys: &syscall.SysProcAttr{Pdeathsig: unix.SIGKILL}}
	listen, ok := env.Lookup(environ, "LISTEN_PID")
	listening := ok && listen == strconv.Itoa(os.Getpid())
	err = lookup(argv[0], environ, func(file string) (err error) {
		args := argv
		if listening {
			// systemd's socket activation names the process that it started; the
			// command has another pid, known only to itself.
			file, args = selfExe, append([]string{listenArg0, file}, argv...)
		}
		pid, err = syscall.ForkExec(file, args, attr)
		if errors.Is(err, unix.ENOEXEC) {
			pid, err = syscall.ForkExec("/bin/sh", shellArgs(file, args), attr)
		}
		return err
	})
	return pid, err
}

// release gives up this process's copies of the files that belong to the
// command: its reader, writer or peer must see the end when the command closes
// them, not when zlexec ends. Files of our own are close-on-exec, what was
// inherited is not; that tells them apart.
func release(fds ...int) {
	if null, err := unix.Open("/dev/null", unix.O_RDWR|unix.O_CLOEXEC, 0); err == nil {
		for _, fd := range fds {
			_ = unix.Dup3(null, fd, 0)
		}
		_ = unix.Close(null)
	}
}

func closeInherited() {
	dir, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return
	}
	for _, e := range dir {
		fd, err := strconv.Atoi(e.Name())
		if err != nil || fd <= 2 {
			continue
		}
		if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil && flags&unix.FD_CLOEXEC == 0 {
			_ = unix.Close(fd)
		}
	}
}
