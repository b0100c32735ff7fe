package launch

import (
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// isPytest reports whether the command runs pytest, which prints failures on
// stdout: pytest itself, "-m pytest" of a python, or either behind a launcher
// that runs its arguments. A wrong yes only costs the relay of stdout.
func isPytest(argv []string) bool {
	for i, a := range argv {
		switch name := path.Base(a); {
		case isPytestName(name):
			return true
		case a == "-m":
			return i+1 < len(argv) && argv[i+1] == "pytest"
		case a == "-c": // a shell's command line, or a python's program
			return i+1 < len(argv) && slices.ContainsFunc(strings.Fields(argv[i+1]), isPytestName)
		case i == 0 && !runsArguments(name):
			return false
		}
	}
	return false
}

func isPytestName(name string) bool {
	return name == "pytest" || name == "py.test" || strings.HasPrefix(name, "pytest-3")
}

// runsArguments reports whether the program is one that runs what its arguments say.
func runsArguments(name string) bool {
	switch name {
	case "sh", "bash", "dash", "zsh", "env", "timeout", "nice", "nohup", "setsid", "stdbuf", "taskset", "numactl", "time", "xvfb-run",
		"srun", "mpirun", "mpiexec", "torchrun", "accelerate", "deepspeed", "coverage", "uv", "poetry", "pipenv", "conda", "hatch", "zlexec":
		return true
	}
	return strings.HasPrefix(name, "python") || strings.HasPrefix(name, "pypy")
}

// replayable reports whether a second attempt can have the same input: a
// terminal, or nothing at all.
func replayable(fd int) bool {
	var st, null unix.Stat_t
	if isTerminal(fd) {
		return true
	}
	return unix.Fstat(fd, &st) == nil && unix.Stat("/dev/null", &null) == nil && st.Rdev == null.Rdev && st.Mode&unix.S_IFMT == unix.S_IFCHR
}
