package scripts_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"
)

// The texts of the three classes, as a program under Slurm would print them.
const (
	fatalText       = "RuntimeError: CUDA error: an illegal memory access was encountered"
	poisonedText    = "RuntimeError: CUDA error: operation failed due to a previous error during capture"
	recoverableText = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
)

// slurm is a running cluster and a zlexec to run in it.
type slurm struct {
	t       *testing.T
	dir     string // a working directory for the test
	environ []string
	zlexec  string
}

// flavours runs a test on a cluster that tracks a step's processes by their
// parents, and on one that tracks them by a cgroup: they signal different ones.
// Both run at once, since they mostly wait. settings are more variables for "up".
func flavours(t *testing.T, test func(s *slurm), settings ...string) {
	if os.Getenv("ZLEXEC_SLURM_TESTS") != "1" {
		t.Skip("set ZLEXEC_SLURM_TESTS=1 to run a real Slurm here (as root; needs slurmctld, slurmd, slurm-client and munge)")
	}
	bin := filepath.Join(t.TempDir(), "zlexec")
	if out, err := exec.Command("./build", bin).CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	for _, flavour := range []string{"linuxproc", "cgroup"} {
		t.Run(flavour, func(t *testing.T) {
			t.Parallel()
			cgroup := "0"
			if flavour == "cgroup" {
				if _, err := os.Stat("/sys/fs/cgroup/freezer"); err != nil {
					t.Skip("proctrack/cgroup needs cgroup v1 with a freezer, which this machine has not")
				}
				cgroup = "1"
			}
			dir := filepath.Join(t.TempDir(), "c")
			up := exec.Command("./slurm-cluster", "up", dir)
			up.Env = append(append(os.Environ(), "SLURM_CLUSTER_CGROUP="+cgroup), settings...)
			out, err := up.CombinedOutput()
			if err != nil {
				t.Fatalf("slurm-cluster up: %v\n%s", err, out)
			}
			t.Logf("%s, proctrack/%s", bytes.TrimSpace(out), flavour)
			t.Cleanup(func() {
				if out, err := exec.Command("./slurm-cluster", "down", dir).CombinedOutput(); err != nil {
					t.Errorf("slurm-cluster down: %v\n%s", err, out)
				}
			})
			test(&slurm{t, t.TempDir(), append(os.Environ(), "SLURM_CONF="+filepath.Join(dir, "slurm.conf")), bin})
		})
	}
}

// command prepares a Slurm command; ZLEXEC in the arguments stands for the binary.
func (s *slurm) command(args ...string) *exec.Cmd {
	for i, a := range args {
		args[i] = strings.ReplaceAll(a, "ZLEXEC", s.zlexec+" -q --telemetry off")
	}
	c := exec.Command(args[0], args[1:]...)
	c.Dir, c.Env = s.dir, s.environ
	return c
}

// run runs a Slurm command line, given as words, to its end.
func (s *slurm) run(args ...string) (stdout, stderr string, code int) {
	var out, errs bytes.Buffer
	c := s.command(args...)
	c.Stdout, c.Stderr = &out, &errs
	if err := c.Run(); err != nil && c.ProcessState == nil {
		s.t.Fatalf("%q: %v", args, err)
	}
	return out.String(), errs.String(), c.ProcessState.ExitCode()
}

// task runs srun with options and a shell line in which zlexec is $Z.
func (s *slurm) task(options, line string) (stdout, stderr string, code int) {
	args := append([]string{"srun"}, strings.Fields(options)...)
	return s.run(append(args, "sh", "-c", "Z='"+s.zlexec+" -q --telemetry off'; "+line)...)
}

// sorted returns the lines of a text in order: tasks print as they please.
func sorted(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	slices.Sort(lines)
	return strings.Join(lines, "|")
}

// eventually polls for what Slurm's daemons bring about in their own time. The
// machine may stand still, so the number of polls is bounded and not the time.
func (s *slurm) eventually(what string, ok func() bool) {
	s.t.Helper()
	for range 1500 {
		if ok() {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	s.t.Errorf("never came: %s", what)
}

// terminal: srun --pty wants a terminal of its own, and hands on a pty for 0, 1 and 2.
func (s *slurm) terminal() {
	c := s.command("srun", "--pty", s.zlexec, "-q", "-b", "cpu", "--", "sh", "-c", "test -t 0 && test -t 1 && test -t 2 && echo all three; exit 7")
	tty, err := pty.Start(c)
	if err != nil {
		s.t.Fatal(err)
	}
	out, _ := io.ReadAll(tty) // ends with EIO when the last writer is gone
	_ = c.Wait()
	if code := c.ProcessState.ExitCode(); code != 7 || !strings.Contains(string(out), "all three") {
		s.t.Errorf("--pty: code %d, %q", code, out)
	}
}

func (s *slurm) file(name string) string {
	data, _ := os.ReadFile(filepath.Join(s.dir, name))
	return string(data)
}

// records returns the lines of a record file, each of which must be whole.
func (s *slurm) records(name string) []map[string]any {
	var list []map[string]any
	for line := range strings.Lines(s.file(name)) {
		var r map[string]any
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			s.t.Errorf("%s: torn line %q: %v", name, line, err)
		}
		list = append(list, r)
	}
	return list
}

func TestSlurmDevices(t *testing.T) {
	flavours(t, func(s *slurm) {
		const mask = "$Z --backend cuda --device rank sh -c 'echo $CUDA_VISIBLE_DEVICES'"
		for _, c := range []struct{ options, line, want string }{
			{"-n4 --gres=gpu:4", mask, "0|1|2|3"},
			{"-n2 --gres=gpu:4", mask, "0|1"},
			{"-n2 -N2 --gres=gpu:2", mask, "0|0"},
			{"-n1 --gres=gpu:2", "$Z -b cuda sh -c 'echo $CUDA_VISIBLE_DEVICES'", "0,1"},
			{"-n1 --gres=gpu:2", "$Z -b cuda -d 1 sh -c 'echo $CUDA_VISIBLE_DEVICES'", "1"},
			{"-n1 --gres=gpu:2", "$Z -b cuda -d none sh -c 'echo [$CUDA_VISIBLE_DEVICES]'", "[-1]"},
			{"-n2 --gres=gpu:2 --gpu-bind=closest", mask, "0|1"},
			// A launcher inside a task divides that task's mask, not the step's.
			{"-n1 --gpus-per-task=2", "for r in 0 1; do LOCAL_RANK=$r LOCAL_WORLD_SIZE=2 " + mask + "; done", "0|1"},
			{"-n2 --gpus-per-task=2 --gpu-bind=mask_gpu:0x3,0x3", "for r in 0 1; do LOCAL_RANK=$r LOCAL_WORLD_SIZE=2 " + mask + "; done", "0|0|1|1"},
			{"-p npu -n2 --gres=npu:2", "$Z -b ascend -d rank sh -c 'echo $ASCEND_RT_VISIBLE_DEVICES'", "0|1"},
			// A site that did not tell Slurm the vendor has all four variables set.
			{"-p any -n1 --gres=gpu:2", "$Z -b cuda env | grep -E 'VISIBLE|ORDINAL|AFFINITY'", "CUDA_VISIBLE_DEVICES=0,1"},
			{"-p any -n1 --gres=gpu:2", "$Z -b rocm env | grep -E 'VISIBLE|ORDINAL|AFFINITY'", "HIP_VISIBLE_DEVICES=0,1"},
			{"-p any -n1 --gres=gpu:2", "$Z -b xpu env | grep -E 'VISIBLE|ORDINAL|AFFINITY'", "ZE_AFFINITY_MASK=0,1"},
			{"-p any -n1 --gres=gpu:2", "$Z -b musa env | grep -E 'VISIBLE|ORDINAL|AFFINITY'", "MUSA_VISIBLE_DEVICES=0,1"},
			// Slurm leaves another vendor's stale variable in place.
			{"-p rocm -n1 --gres=gpu:1 --export=ALL,CUDA_VISIBLE_DEVICES=7", "$Z -b rocm env | grep -E VISIBLE", "HIP_VISIBLE_DEVICES=0"},
			{"-p ze -n2 --gres=gpu:2", "$Z -b xpu -d rank sh -c 'echo $ZE_AFFINITY_MASK'", "0|1"},
		} {
			if out, errs, _ := s.task(c.options, c.line); sorted(out) != c.want {
				s.t.Errorf("srun %s: %s: got %q, want %q\n%s", c.options, c.line, sorted(out), c.want, errs)
			}
		}
		// Each task has a mask of its own already. With a device cgroup both say 0,
		// for two cards; without one they say which.
		for _, options := range []string{"-n2 --gpus-per-task=1", "-n2 --gres=gpu:2 --gpu-bind=single:1", "-n2 --gres=gpu:4 --gpu-bind=map_gpu:3,1",
			"-n2 --gpus-per-task=2", "-n4 --gres=gpu:4 --gpu-bind=mask_gpu:0x3,0x3,0xc,0xc"} {
			bare, _, _ := s.task(options, "echo $CUDA_VISIBLE_DEVICES")
			if out, errs, code := s.task(options, mask); code != 0 || sorted(out) != sorted(bare) {
				s.t.Errorf("srun %s: got %q, bare %q\n%s", options, sorted(out), sorted(bare), errs)
			}
		}
		for _, c := range []struct{ options, line, text string }{
			{"-n4 --gres=gpu:2", mask, "2 devices for 4 ranks"},
			{"-n2 --gres=gpu:1", mask, "1 devices for 2 ranks"},
			{"-n1 --gres=gpu:2", "$Z -b cuda -d 3 true", "device 3 is outside the allocation (SLURM_JOB_ID): its mask is 0,1"},
		} {
			if _, errs, code := s.task(c.options, c.line); code != 125 || !strings.Contains(errs, c.text) {
				s.t.Errorf("srun %s: %s: code %d, want 125 and %q\n%s", c.options, c.line, code, c.text, errs)
			}
		}
	})
}

func TestSlurmStep(t *testing.T) {
	flavours(t, func(s *slurm) {
		if out, errs, code := s.run("srun", "--export=NONE", "-n1", s.zlexec, "-q", "-b", "cpu", "--", "env"); code != 0 || strings.Contains(out, "\nPATH=") || !strings.Contains(out, "ZL_BACKEND=cpu") {
			s.t.Errorf("without PATH and HOME: code %d\n%s%s", code, out, errs)
		}
		if out, errs, code := s.task("--mpi=pmi2 -n2", `$Z -b cpu sh -c 'readlink /proc/self/fd/$PMI_FD | cut -d: -f1'`); code != 0 || sorted(out) != "socket|socket" {
			s.t.Errorf("PMI2's socket: code %d, %q\n%s", code, out, errs)
		}
		if out, _, _ := s.task("-l -n2", `$Z -b cpu sh -c 'echo out; echo err >&2'`); sorted(out) != "0: out|1: out" {
			s.t.Errorf("--label: %q", sorted(out))
		}
		s.terminal()
		// 64 tasks in one file, and a file for each rank.
		if _, errs, code := s.task("-n64 --overcommit", "$Z -b cpu --record all.jsonl true"); code != 0 {
			s.t.Errorf("64 tasks: code %d\n%s", code, errs)
		}
		ranks := map[string]bool{}
		for _, r := range s.records("all.jsonl") {
			ranks[fmt.Sprint(r["scheduler"].(map[string]any)["rank"])] = true
		}
		if len(ranks) != 64 {
			s.t.Errorf("%d of 64 ranks are in the record", len(ranks))
		}
		s.task("-n3 --gres=gpu:3", "$Z -b cuda -d rank --record r.{job_id}.{step_id}.{rank}.jsonl true")
		files, _ := filepath.Glob(filepath.Join(s.dir, "r.*.0.[012].jsonl"))
		if len(files) != 3 {
			s.t.Fatalf("files of the ranks: %q", files)
		}
		for rank, f := range files {
			r := s.records(filepath.Base(f))[0]
			sch := r["scheduler"].(map[string]any)
			if sch["kind"] != "slurm" || sch["job_id"] == nil || sch["step_id"] != "0" || sch["rank"] != fmt.Sprint(rank) ||
				sch["local_rank"] != fmt.Sprint(rank) || sch["step_gpus"] != "0,1,2" || r["mask"] != fmt.Sprint(rank) {
				s.t.Errorf("%s: mask %v, scheduler %v", f, r["mask"], sch)
			}
		}
		// A heterogeneous job: each component has its own devices.
		out, errs, code := s.run("srun", "-n1", "--gres=gpu:1", s.zlexec, "-q", "-b", "cuda", "-d", "rank", "--", "sh", "-c", "echo $CUDA_VISIBLE_DEVICES",
			":", "-n2", "--gres=gpu:2", s.zlexec, "-q", "-b", "cuda", "-d", "rank", "--", "sh", "-c", "echo $CUDA_VISIBLE_DEVICES")
		if code != 0 || len(strings.Fields(out)) != 3 {
			s.t.Errorf("a heterogeneous job: code %d, %q\n%s", code, out, errs)
		}
	})
}
