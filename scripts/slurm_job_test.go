package scripts_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// batch writes a batch script, submits it, and returns the job's id.
func (s *slurm) batch(options, script string) string {
	s.t.Helper()
	name := filepath.Join(s.dir, "job.sh")
	script = "#!/bin/bash\nZ='" + s.zlexec + " -q --telemetry off -b cuda'\n" + script + "\n"
	if err := os.WriteFile(name, []byte(script), 0o755); err != nil {
		s.t.Fatal(err)
	}
	args := append([]string{"sbatch", "--parsable"}, strings.Fields(options)...)
	out, errs, code := s.run(append(args, name)...)
	if code != 0 {
		s.t.Fatalf("sbatch: code %d\n%s", code, errs)
	}
	return strings.TrimSpace(out)
}

// state returns what Slurm says of a job.
func (s *slurm) state(job string) string {
	out, _, _ := s.run("scontrol", "show", "job", job)
	return out
}

func (s *slurm) cancel(job string) { s.run("scancel", job) }

func TestSlurmExitCodes(t *testing.T) {
	flavours(t, func(s *slurm) {
		line := fmt.Sprintf("case $SLURM_PROCID in 0) T='%s' ;; 1) T='%s' ;; 2) T='%s' ;; *) T=fine ;; esac; export T; ", recoverableText, poisonedText, fatalText)
		for tasks, want := range map[string]int{"1": 80, "2": 81, "3": 82, "4": 82} {
			if _, errs, code := s.task("-n"+tasks, line+`$Z -b cuda sh -c 'echo "$T" >&2; test "$T" = fine'`); code != want {
				s.t.Errorf("%s tasks: srun's code is %d, want %d\n%s", tasks, code, want, errs)
			}
		}
		if _, _, code := s.task("-n1", "$Z -b cuda sh -c 'exit 5'"); code != 5 {
			s.t.Errorf("an own code: %d", code)
		}
		if _, _, code := s.task("-n2", `$Z -b cuda sh -c 'test $SLURM_PROCID = 0 || kill -KILL $$; echo "`+fatalText+`" >&2; exit 1'`); code != 128+9 {
			s.t.Errorf("82 beside a task that is killed: srun's code is %d, want 137", code)
		}
		waited := filepath.Join(s.dir, "wait.sh")
		script := "#!/bin/bash\nexec " + s.zlexec + " -q --telemetry off -b cuda sh -c 'echo \"" + fatalText + "\" >&2; exit 1'\n"
		if err := os.WriteFile(waited, []byte(script), 0o755); err != nil {
			s.t.Fatal(err)
		}
		if _, errs, code := s.run("sbatch", "--wait", "-o", "/dev/null", waited); code != 82 {
			s.t.Errorf("sbatch --wait: code %d, want 82\n%s", code, errs)
		}
		// 82 ends a batch job for good; 80 requeues it and 81 holds it (slurm.conf's
		// RequeueExit and RequeueExitHold: the recipe of docs/slurm.md).
		for text, want := range map[string]string{fatalText: "JobState=FAILED Reason=NonZeroExitCode", recoverableText: "Restarts=1", poisonedText: "Reason=JobHeldUser"} {
			job := s.batch("-n1 -o out", fmt.Sprintf(`srun $Z -- sh -c 'echo "%s" >&2; exit 1'`, text))
			s.eventually(want+" for "+text, func() bool { return strings.Contains(s.state(job), want) })
			s.cancel(job)
		}
		job := s.batch("--array=1-3 -o /dev/null", "exec $Z --record array.jsonl -- true")
		s.eventually("three lines of the array", func() bool { return len(s.records("array.jsonl")) == 3 })
		for _, r := range s.records("array.jsonl") {
			if sch := r["scheduler"].(map[string]any); sch["array_task"] == nil || sch["job_id"] == nil {
				s.t.Errorf("job %s: scheduler %v", job, sch)
			}
		}
	})
}

// TestSlurmSelfRequeue is the recipe for sites whose slurm.conf cannot be changed.
func TestSlurmSelfRequeue(t *testing.T) {
	flavours(t, func(s *slurm) {
		job := s.batch("-n1 -o out --requeue --open-mode=append", fmt.Sprintf(`
srun $Z --record runs.jsonl -- sh -c 'echo "%s" >&2; exit 1'
code=$?
if [ $code = 80 ] && [ "${SLURM_RESTART_COUNT:-0}" -lt 2 ]; then
	scontrol requeue "$SLURM_JOB_ID" && sleep 60
fi
exit $code`, recoverableText))
		asked := 0
		s.eventually("the last of three starts fails", func() bool {
			state := s.state(job)
			// Slurm would wait two minutes. slurmd refuses a start (exit code 1) in the
			// second in which it ended the last one, so each is asked for once, and later.
			if next := fmt.Sprintf("Restarts=%d", asked+1); strings.Contains(state, "JobState=PENDING") && strings.Contains(state, next) {
				time.Sleep(2 * time.Second)
				s.run("scontrol", "update", "jobid="+job, "starttime=now")
				asked++
			}
			return strings.Contains(state, "JobState=FAILED") && strings.Contains(state, "Restarts=2") && strings.Contains(state, "ExitCode=80:0")
		})
		if n := len(s.records("runs.jsonl")); n != 3 {
			s.t.Errorf("%d records, want one for each of three starts; output:\n%s\n%s", n, s.file("out"), s.state(job))
		}
	}, "SLURM_CLUSTER_REQUEUE=0")
}

// counter records what it is sent, and takes a moment over TERM, as a program
// that saves its state does.
const counter = `
import os, signal, sys, time
f = os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
got = []
def note(n, _):
    os.write(f, b"%s\n" % signal.Signals(n).name.encode())
    got.append(n)
for n in (signal.SIGUSR1, signal.SIGUSR2, signal.SIGTERM):
    signal.signal(n, note)
os.write(f, b"ready\n")
while signal.SIGTERM not in got:
    time.sleep(0.05)
time.sleep(1)
os.write(f, b"saved\n")
sys.exit(3)
`

func TestSlurmSignals(t *testing.T) {
	flavours(t, func(s *slurm) {
		if _, err := os.Stat("/usr/bin/python3"); err != nil {
			s.t.Skip("no /usr/bin/python3")
		}
		program := filepath.Join(s.dir, "counter.py")
		if err := os.WriteFile(program, []byte(counter), 0o666); err != nil {
			s.t.Fatal(err)
		}
		limited := s.batch("-n1 -t 1 --signal=USR2@30 -o /dev/null", "srun $Z --record limit.jsonl -- /usr/bin/python3 "+program+" limit")

		job := s.batch("-n1 -o out --open-mode=append", "srun $Z --record stop.jsonl -- /usr/bin/python3 "+program+" got")
		s.eventually("the start", func() bool { return strings.Contains(s.file("got"), "ready") })
		for i := range 5 {
			s.run("scancel", "-s", "USR1", job+".0")
			s.eventually("a USR1", func() bool { return strings.Count(s.file("got"), "SIGUSR1") > i })
			time.Sleep(300 * time.Millisecond) // the sentinel has been replaced by then (docs/transparency.md)
		}
		s.run("scancel", job)
		s.eventually("the record of a cancelled step", func() bool { return len(s.records("stop.jsonl")) == 1 })
		want := "ready SIGUSR1 SIGUSR1 SIGUSR1 SIGUSR1 SIGUSR1 SIGTERM saved"
		if got := strings.Join(strings.Fields(s.file("got")), " "); got != want {
			s.t.Errorf("the command got %q, want %q", got, want)
		}
		if r := s.records("stop.jsonl")[0]; r["exit"].(map[string]any)["code"] != 3.0 || r["exit_code"] != 3.0 {
			s.t.Errorf("record of a command that saved its state: exit %v, exit_code %v", r["exit"], r["exit_code"])
		}

		// Many tasks that wake together: the sender takes its time to reach them all.
		const tasks = 16
		job = s.batch("-n1 -o out --open-mode=append", fmt.Sprintf("srun -n%d --overcommit $Z -- sh -c 'exec /usr/bin/python3 %s many.$SLURM_PROCID'", tasks, program))
		each := func(list string) bool {
			for task := range tasks {
				if strings.Join(strings.Fields(s.file(fmt.Sprint("many.", task))), " ") != list {
					return false
				}
			}
			return true
		}
		s.eventually("the start of many", func() bool { return each("ready") })
		s.run("scancel", "-s", "USR1", job+".0")
		s.eventually("a USR1 for each", func() bool { return each("ready SIGUSR1") })
		time.Sleep(2 * time.Second) // for one too many: zlexec waits a second
		s.run("scancel", job)
		s.eventually("one TERM for each", func() bool { return each("ready SIGUSR1 SIGTERM saved") })

		// A command that dies of the cancellation: nothing but the record is left.
		job = s.batch("-n1 -o out --open-mode=append", "srun $Z --record dead.jsonl -- sh -c 'echo up >up; exec sleep 600'")
		s.eventually("a running command", func() bool { return s.file("up") != "" })
		s.run("scancel", job)
		s.eventually("the record of a command that died", func() bool { return len(s.records("dead.jsonl")) == 1 })
		if r := s.records("dead.jsonl"); len(r) != 1 || r[0]["exit"].(map[string]any)["signal"] != "SIGTERM" {
			s.t.Errorf("record of a cancelled command: %v", r)
		}

		// A warning ahead of the time limit, and the limit: Slurm sends TERM, and CONT
		// and TERM once more where the step still lives. It looks every half minute.
		s.eventually("the warning", func() bool { return strings.Contains(s.file("limit"), "SIGUSR2") })
		s.eventually("the time limit", func() bool { return strings.Contains(s.state(limited), "JobState=TIMEOUT") })
		s.eventually("the record of a step that ran too long", func() bool { return len(s.records("limit.jsonl")) == 1 })
		got := strings.Fields(s.file("limit"))
		want = "ready SIGUSR2 SIGTERM saved" // the second TERM may come while the first is being handled, or after
		if strings.Join(slices.Compact(got), " ") != want {
			s.t.Errorf("up to the time limit the command got %q, want %q", got, want)
		}
	})
}
