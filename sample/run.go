package sample

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// outcome is how a tool's run went. reason is set when there is no answer to judge.
type outcome struct {
	stdout, stderr []byte
	code           int
	missing        bool
	timedOut       bool
	reason         string
}

const (
	// mostOutput is far above any tool's answer (16 devices in full are 300 kB).
	mostOutput = 4 << 20
	// drainTime is for what a tool had written when it ended; a process that it
	// left behind may keep the pipe open for ever.
	drainTime = 100 * time.Millisecond
)

// summary says why a tool that ended gave nothing.
func (o outcome) summary(name string) string {
	said := usefulLines(clean(string(o.stdout)))
	if said == "" {
		said = usefulLines(clean(string(o.stderr)))
	}
	if said == "" {
		said = "it printed nothing"
	}
	if o.code != 0 {
		return fmt.Sprintf("%s exited %d: %s", filepath.Base(name), o.code, said)
	}
	return fmt.Sprintf("%s gave no answer: %s", filepath.Base(name), said)
}

// find looks name up on PATH, then in dirs.
func find(name string, dirs []string) (string, error) {
	path, err := exec.LookPath(name)
	if err == nil {
		return path, nil
	}
	for _, dir := range dirs {
		if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return path, nil
		}
	}
	return "", err
}

// run runs a tool in a process group of its own, with nothing on stdin, until it
// ends or the deadline. Whatever is left of the group then is killed. A leader that
// does not die of that is stuck in the driver and is abandoned.
func run(argv, dirs, env []string, deadline time.Time) outcome {
	path, err := find(argv[0], dirs)
	if err != nil {
		return outcome{missing: true, reason: argv[0] + " is not on PATH"}
	}
	if !time.Now().Before(deadline) {
		return outcome{timedOut: true, reason: "no time was left for " + argv[0]}
	}
	cmd := exec.Command(path, argv[1:]...)
	cmd.Args[0] = argv[0]
	cmd.Env = cLocale(env)
	// The tool goes when zlexec does, also by a signal that nothing here catches. The
	// kernel ties that to the thread that starts the tool, so it must stay.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	stdout, err := newSink()
	if err != nil {
		return outcome{reason: err.Error()}
	}
	defer stdout.r.Close()
	stderr, err := newSink()
	if err != nil {
		stdout.w.Close()
		return outcome{reason: err.Error()}
	}
	defer stderr.r.Close()
	cmd.Stdout, cmd.Stderr = stdout.w, stderr.w
	err = cmd.Start()
	stdout.w.Close()
	stderr.w.Close()
	if err != nil {
		return outcome{reason: fmt.Sprintf("run %s: %s", argv[0], err)}
	}
	return attend(cmd, stdout, stderr, deadline)
}

// attend waits for a started tool.
func attend(cmd *exec.Cmd, stdout, stderr *sink, deadline time.Time) (o outcome) {
	pid, name := cmd.Process.Pid, cmd.Args[0]
	ended := make(chan struct{})
	// Not waited for when the leader survives SIGKILL: it ends with the leader.
	go func() {
		// Until it is reaped below, the leader's id, and so the group's, is its own.
		for unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil) == unix.EINTR {
		}
		unix.Kill(-pid, unix.SIGKILL)
		cmd.Wait()
		close(ended)
	}()
	flooded := make(chan struct{}, 2)
	var reading sync.WaitGroup
	for _, s := range []*sink{stdout, stderr} {
		reading.Go(func() {
			if s.fill() {
				flooded <- struct{}{}
			}
		})
	}
	timer := time.NewTimer(time.Until(deadline))
	defer timer.Stop()
	select {
	case <-ended:
	case <-flooded:
		o.reason = fmt.Sprintf("%s printed more than %d MiB", name, mostOutput>>20)
	case <-timer.C:
		o.timedOut = true
		o.reason = fmt.Sprintf("%s did not end within its time", name)
	}
	if o.reason != "" {
		unix.Kill(-pid, unix.SIGKILL)
		select {
		case <-ended:
		case <-time.After(stopGrace):
		}
	}
	// Closed pipes end at once; one that a runaway still holds ends here.
	until := time.Now().Add(drainTime)
	if o.reason != "" {
		until = time.Now()
	} else if latest := deadline.Add(stopGrace); until.After(latest) {
		until = latest
	}
	stdout.r.SetReadDeadline(until)
	stderr.r.SetReadDeadline(until)
	reading.Wait()
	o.stdout, o.stderr = stdout.data, stderr.data
	if o.reason == "" {
		o.code = cmd.ProcessState.ExitCode()
	}
	return o
}

// sink is a bounded reader of one of the tool's outputs.
type sink struct {
	r, w *os.File
	data []byte
}

func newSink() (*sink, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("open a pipe for a vendor tool: %w", err)
	}
	return &sink{r: r, w: w}, nil
}

// fill reads to the end or to mostOutput, and reports whether that was reached.
func (s *sink) fill() bool {
	data, err := io.ReadAll(io.LimitReader(s.r, mostOutput))
	s.data = data
	return len(data) == mostOutput && (err == nil || errors.Is(err, os.ErrDeadlineExceeded))
}

// cLocale returns env with LC_ALL=C alone: decimal points and English words.
func cLocale(env []string) []string {
	if env == nil {
		env = os.Environ()
	}
	out := make([]string, 0, len(env)+1)
	for _, e := range env {
		if !strings.HasPrefix(e, "LC_ALL=") {
			out = append(out, e)
		}
	}
	return append(out, "LC_ALL=C")
}
