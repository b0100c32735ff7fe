package launch

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/flagos-ai/zlexec/env"
)

// Scheduler says as what part of which job the command ran; nil is unknown.
type Scheduler struct {
	// Kind is slurm, flux, lsf, pbs, sge, or mpi and torchrun for a launcher
	// without a scheduler.
	Kind      string  `json:"kind"`
	JobID     *string `json:"job_id"`
	StepID    *string `json:"step_id"`
	ArrayTask *string `json:"array_task"`
	Rank      *string `json:"rank"`
	LocalRank *string `json:"local_rank"`
	Node      *string `json:"node"`
	// JobGPUs and StepGPUs are Slurm's own ids of the job's and the step's
	// devices on this node, which a device cgroup renumbers for the mask.
	JobGPUs  *string `json:"job_gpus"`
	StepGPUs *string `json:"step_gpus"`
	Restarts *string `json:"restarts"` // how often the job was requeued
}

// launcher is one that starts the ranks of a job, by the variables it sets for
// each. job proves an allocation; the rest may be empty. masks tells that it can
// give each of its ranks a mask of its own.
type launcher struct {
	kind, job, step, rank, local, ranks string

	masks bool
}

// launchers stand in the order in which they may be nested: one that is started
// inside another comes first, since its ranks are the ones that matter.
// Sources: srun(1), flux-environment(7), OpenMPI, MPICH and PALS documentation,
// torch.distributed.run; for the masks srun --gpu-bind, flux's gpu-affinity=per-task,
// Hydra's -gpus-per-proc and PALS's --gpu-bind.
var launchers = [...]launcher{
	{kind: "torchrun", rank: "RANK", local: "LOCAL_RANK", ranks: "LOCAL_WORLD_SIZE"},
	{kind: "mpi", rank: "OMPI_COMM_WORLD_RANK", local: "OMPI_COMM_WORLD_LOCAL_RANK", ranks: "OMPI_COMM_WORLD_LOCAL_SIZE"},
	{kind: "mpi", rank: "PMI_RANK", local: "MPI_LOCALRANKID", ranks: "MPI_LOCALNRANKS", masks: true},
	{kind: "mpi", rank: "PALS_RANKID", local: "PALS_LOCAL_RANKID", ranks: "PALS_LOCAL_SIZE", masks: true},
	{kind: "flux", job: "FLUX_JOB_ID", rank: "FLUX_TASK_RANK", local: "FLUX_TASK_LOCAL_ID", masks: true},
	{kind: "slurm", job: "SLURM_JOB_ID", step: "SLURM_STEP_ID", rank: "SLURM_PROCID", local: "SLURM_LOCALID", masks: true},
	{kind: "lsf", job: "LSB_JOBID"},
	{kind: "pbs", job: "PBS_JOBID"},
	{kind: "sge", job: "JOB_ID"}, // only beside SGE_TASK_ID: see allocation
}

// allocation returns the scheduler that gave this process its devices, or nil.
func allocation(environ []string) *launcher {
	for _, l := range launchers {
		if l.job == "" || !has(environ, l.job) || l.kind == "sge" && !has(environ, "SGE_TASK_ID") {
			continue
		}
		return &l
	}
	return nil
}

func has(environ []string, name string) bool {
	v, ok := env.Lookup(environ, name)
	return ok && v != ""
}

func value(environ []string, name string) *string {
	if v, ok := env.Lookup(environ, name); ok && name != "" && v != "" {
		return &v
	}
	return nil
}

// DetectScheduler reads the scheduler's block of the record from the
// environment, or returns nil where there is none.
func DetectScheduler(environ []string) *Scheduler {
	job, ranks := allocation(environ), ranker(environ)
	if job == nil && ranks == nil {
		return nil
	}
	s := &Scheduler{}
	if ranks != nil {
		s.Kind, s.Rank, s.LocalRank = ranks.kind, value(environ, ranks.rank), value(environ, ranks.local)
	}
	if job != nil {
		s.Kind, s.JobID, s.StepID = job.kind, value(environ, job.job), value(environ, job.step)
	}
	if s.Kind == "slurm" {
		s.ArrayTask, s.Node = value(environ, "SLURM_ARRAY_TASK_ID"), value(environ, "SLURMD_NODENAME")
		s.JobGPUs, s.StepGPUs = value(environ, "SLURM_JOB_GPUS"), value(environ, "SLURM_STEP_GPUS")
		s.Restarts = value(environ, "SLURM_RESTART_COUNT")
	}
	return s
}

// InAllocation returns the variable that proves that a scheduler granted this
// process its devices, or an empty text.
func InAllocation(environ []string) string {
	if l := allocation(environ); l != nil {
		return l.job
	}
	return ""
}

// ranker returns the launcher that numbered this process on its node, or nil.
func ranker(environ []string) *launcher {
	for _, l := range launchers {
		if l.local != "" && has(environ, l.local) {
			return &l
		}
	}
	return nil
}

// LocalRank returns this process's number among those that its launcher started
// on this node, and how many there are, 0 where the launcher does not tell.
func LocalRank(environ []string) (rank, ranks int, err error) {
	l := ranker(environ)
	if l == nil {
		return 0, 0, fmt.Errorf("--device rank: no launcher set a local rank (SLURM_LOCALID, OMPI_COMM_WORLD_LOCAL_RANK, MPI_LOCALRANKID, PALS_LOCAL_RANKID, FLUX_TASK_LOCAL_ID, LOCAL_RANK): start it with one, or name the device")
	}
	text, _ := env.Lookup(environ, l.local)
	rank, err = strconv.Atoi(text)
	if err != nil || rank < 0 {
		return 0, 0, fmt.Errorf("--device rank: %s=%s is no rank", l.local, text)
	}
	if l.kind == "slurm" {
		return rank, slurmTasks(environ), nil
	}
	text, _ = env.Lookup(environ, l.ranks)
	ranks, _ = strconv.Atoi(text) // absent or odd: not known
	return rank, max(ranks, 0), nil
}

// slurmTasks returns how many tasks the step has on this node, 0 for unknown:
// SLURM_STEP_TASKS_PER_NODE is a list such as "4(x2),3", one count per node.
func slurmTasks(environ []string) int {
	list, _ := env.Lookup(environ, "SLURM_STEP_TASKS_PER_NODE")
	node, _ := env.Lookup(environ, "SLURM_NODEID")
	at, err := strconv.Atoi(node)
	if err != nil {
		return 0
	}
	for group := range strings.SplitSeq(list, ",") {
		count, repeat, _ := strings.Cut(strings.TrimSuffix(group, ")"), "(x")
		n, err := strconv.Atoi(count)
		if err != nil {
			return 0
		}
		times, err := strconv.Atoi(repeat)
		if err != nil {
			times = 1
		}
		if at < times {
			return n
		}
		at -= times
	}
	return 0
}

// RankDevices returns the devices of one of a node's ranks, from those that it
// sees. The entries are opaque: with device cgroups every task sees the same
// number for another card. A mask that the scheduler has divided among the tasks
// already is kept; one that all tasks share is divided by local rank.
func RankDevices(devices []string, rank, ranks int, divided bool) ([]string, error) {
	switch {
	case len(devices) == 0:
		return nil, fmt.Errorf("--device rank: the mask hides every device")
	case divided:
		return devices, nil
	case rank >= len(devices), ranks > len(devices):
		return nil, fmt.Errorf("--device rank: %d devices for %d ranks on this node (this is local rank %d): ask for one device per rank, or name the devices",
			len(devices), max(ranks, rank+1), rank)
	}
	return devices[rank : rank+1], nil
}

// divided reports whether this rank has a mask of its own, of n devices. srun tells:
// Slurm then granted the step more on this node than the task sees. Of the other
// launchers that can divide, one device is taken for this rank's own.
func divided(environ []string, n int) bool {
	l := ranker(environ)
	if l == nil || !l.masks && has(environ, l.ranks) {
		return false // its ranks share what it was given, even if that is one task's mask
	}
	granted, _ := env.Lookup(environ, "SLURM_GPUS_ON_NODE")
	if count, err := strconv.Atoi(granted); err == nil {
		return count > n
	}
	return n == 1 && l.masks && l.kind != "slurm"
}
