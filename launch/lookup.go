package launch

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/flagos-ai/zlexec/env"
)

// Exit codes of zlexec itself, as env(1), nice(1) and timeout(1) have them.
const (
	ExitTimeout       = 124 // --timeout ended the command
	ExitUsage         = 125 // zlexec itself failed: bad usage, unknown backend, device outside the allocation
	ExitCannotExecute = 126 // the command was found but cannot be executed
	ExitNotFound      = 127 // the command was not found
)

// StartError says that the command could not be started.
type StartError struct {
	Command string
	Err     error // ENOENT, EACCES, …
	Code    int   // ExitCannotExecute or ExitNotFound
}

func (e *StartError) Error() string {
	if e.Code == ExitNotFound && !strings.Contains(e.Command, "/") {
		return fmt.Sprintf("%s: command not found on the command's PATH", e.Command)
	}
	return fmt.Sprintf("%s: %s", e.Command, errorText(e.Err))
}

func (e *StartError) Unwrap() error { return e.Err }

func errorText(err error) string {
	if errno, ok := errors.AsType[unix.Errno](err); ok {
		return errno.Error()
	}
	return err.Error()
}

// defaultPath is where execvp(3) looks when there is no PATH (glibc, confstr _CS_PATH).
const defaultPath = "/bin:/usr/bin"

// lookup finds the command as execvp(3) does, on the PATH that the command itself
// will have, and hands each file found to try until one can be started: relative and
// empty elements count from the working directory, and a file that may not be
// executed, or whose interpreter is missing, is remembered while the search goes on.
// os/exec.LookPath refuses the first and reads our own PATH.
func lookup(command string, environ []string, try func(file string) error) error {
	if command == "" {
		return &StartError{command, unix.ENOENT, ExitNotFound}
	}
	if strings.Contains(command, "/") {
		if err := executable(command); err != nil {
			return startError(command, err)
		}
		return cannotExecute(command, try(command))
	}
	path, ok := env.Lookup(environ, "PATH")
	if !ok {
		path = defaultPath
	}
	var denied error
	for dir := range strings.SplitSeq(path, ":") {
		if dir == "" {
			dir = "."
		}
		file := dir + "/" + command
		err := executable(file)
		if errors.Is(err, fs.ErrPermission) {
			denied = err
		}
		if err != nil {
			continue
		}
		if err = try(file); !goesOn(err) {
			return cannotExecute(command, err)
		}
		denied = err
	}
	if denied != nil {
		return cannotExecute(command, denied)
	}
	return &StartError{command, unix.ENOENT, ExitNotFound}
}

// goesOn reports whether execvp(3) looks further after this failure to execute a file.
func goesOn(err error) bool {
	return slices.ContainsFunc([]error{unix.EACCES, unix.ENOENT, unix.ENOTDIR, unix.ESTALE, unix.ENODEV, unix.ETIMEDOUT},
		func(e error) bool { return errors.Is(err, e) })
}

// cannotExecute is for a file that is there, whatever execve(2) says of it: ENOENT
// then means its interpreter.
func cannotExecute(command string, err error) error {
	if err == nil {
		return nil
	}
	return &StartError{command, err, ExitCannotExecute}
}

func startError(command string, err error) error {
	code := ExitCannotExecute
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) {
		code = ExitNotFound
	}
	return &StartError{command, err, code}
}

// executable reports why a file cannot be executed; a directory is EACCES, as
// execve(2) says.
func executable(file string) error {
	var st unix.Stat_t
	if err := unix.Stat(file, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return unix.EACCES
	}
	return unix.Faccessat(unix.AT_FDCWD, file, unix.X_OK, unix.AT_EACCESS)
}
