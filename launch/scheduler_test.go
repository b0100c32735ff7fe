package launch

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

func TestLocalRank(t *testing.T) {
	tests := []struct {
		environ string
		rank    int
		ranks   int
		err     string
	}{
		{"SLURM_JOB_ID=1 SLURM_LOCALID=2 SLURM_NODEID=0 SLURM_STEP_TASKS_PER_NODE=4(x2),3", 2, 4, ""},
		{"SLURM_JOB_ID=1 SLURM_LOCALID=0 SLURM_NODEID=2 SLURM_STEP_TASKS_PER_NODE=4(x2),3", 0, 3, ""},
		{"SLURM_JOB_ID=1 SLURM_LOCALID=0", 0, 0, ""},
		{"SLURM_JOB_ID=1 SLURM_LOCALID=0 SLURM_NODEID=7 SLURM_STEP_TASKS_PER_NODE=2", 0, 0, ""},
		{"OMPI_COMM_WORLD_LOCAL_RANK=3 OMPI_COMM_WORLD_LOCAL_SIZE=8", 3, 8, ""},
		{"MPI_LOCALRANKID=1 MPI_LOCALNRANKS=2", 1, 2, ""},
		{"PALS_LOCAL_RANKID=5 PALS_LOCAL_SIZE=6", 5, 6, ""},
		{"FLUX_JOB_ID=f1 FLUX_TASK_LOCAL_ID=1", 1, 0, ""},
		{"LOCAL_RANK=1 LOCAL_WORLD_SIZE=4", 1, 4, ""},
		// The innermost launcher counts: mpirun and torchrun inside a batch step.
		{"SLURM_JOB_ID=1 SLURM_LOCALID=0 OMPI_COMM_WORLD_LOCAL_RANK=3 OMPI_COMM_WORLD_LOCAL_SIZE=4", 3, 4, ""},
		{"SLURM_JOB_ID=1 SLURM_LOCALID=0 LOCAL_RANK=2 LOCAL_WORLD_SIZE=4", 2, 4, ""},
		{"SLURM_JOB_ID=1", 0, 0, "no launcher set a local rank"},
		{"SLURM_LOCALID=-1", 0, 0, "SLURM_LOCALID=-1 is no rank"},
		{"LOCAL_RANK=x", 0, 0, "LOCAL_RANK=x is no rank"},
	}
	for _, tt := range tests {
		rank, ranks, err := LocalRank(strings.Fields(tt.environ))
		if tt.err != "" {
			if err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%s: %v, want %q", tt.environ, err, tt.err)
			}
			continue
		}
		if err != nil || rank != tt.rank || ranks != tt.ranks {
			t.Errorf("%s: rank %d of %d, %v; want %d of %d", tt.environ, rank, ranks, err, tt.rank, tt.ranks)
		}
	}
}

func TestRankDevices(t *testing.T) {
	tests := []struct {
		devices     string
		rank, ranks int
		divided     bool
		want        string // a list, or a part of the error
	}{
		{"0 1 2 3", 2, 4, false, "2"},
		{"4 5 6 7", 0, 2, false, "4"},
		{"GPU-a GPU-b", 1, 2, false, "GPU-b"},
		{"0 1", 1, 0, false, "1"},
		{"0", 3, 4, true, "0"},
		{"2 3", 1, 2, true, "2 3"},
		{"0 1", 3, 4, false, "2 devices for 4 ranks"},
		{"0 1", 0, 4, false, "2 devices for 4 ranks"},
		{"0 1", 5, 0, false, "2 devices for 6 ranks"},
		{"", 0, 1, false, "hides every device"},
	}
	for _, tt := range tests {
		got, err := RankDevices(strings.Fields(tt.devices), tt.rank, tt.ranks, tt.divided)
		if err != nil && strings.Contains(tt.want, " ") && strings.Contains(err.Error(), tt.want) {
			continue
		}
		if err != nil || !slices.Equal(got, strings.Fields(tt.want)) {
			t.Errorf("%+v: got %q, %v", tt, got, err)
		}
	}
}

func TestDivided(t *testing.T) {
	tests := []struct {
		environ string
		n       int
		want    bool
	}{
		{"SLURM_LOCALID=1 SLURM_GPUS_ON_NODE=4", 1, true},  // --gpus-per-task=1
		{"SLURM_LOCALID=1 SLURM_GPUS_ON_NODE=4", 2, true},  // --gpu-bind=closest, per_task:2
		{"SLURM_LOCALID=1 SLURM_GPUS_ON_NODE=4", 4, false}, // --gres=gpu:4
		{"SLURM_LOCALID=1 SLURM_GPUS_ON_NODE=1", 1, false}, // two tasks on one card
		{"SLURM_LOCALID=1", 1, false},                      // a gres without a plugin, which srun never divides
		// Launchers inside a step: their ranks share the mask of the task.
		{"SLURM_LOCALID=1 SLURM_GPUS_ON_NODE=4 LOCAL_RANK=1 LOCAL_WORLD_SIZE=2", 2, false},
		{"SLURM_LOCALID=0 SLURM_GPUS_ON_NODE=4 OMPI_COMM_WORLD_LOCAL_RANK=1 OMPI_COMM_WORLD_LOCAL_SIZE=2", 2, false},
		{"SLURM_LOCALID=0 SLURM_GPUS_ON_NODE=4 MPI_LOCALRANKID=1 MPI_LOCALNRANKS=4", 1, true},
		// A script that says export LOCAL_RANK=$SLURM_LOCALID is no torchrun.
		{"SLURM_LOCALID=3 SLURM_GPUS_ON_NODE=4 LOCAL_RANK=3", 1, true},
		{"FLUX_TASK_LOCAL_ID=1", 1, true},
		{"FLUX_TASK_LOCAL_ID=1", 2, false},
		{"PALS_LOCAL_RANKID=1 PALS_LOCAL_SIZE=4", 1, true},
		{"MPI_LOCALRANKID=1 MPI_LOCALNRANKS=4", 1, true},
		{"LOCAL_RANK=1 LOCAL_WORLD_SIZE=2", 1, false},
		{"OMPI_COMM_WORLD_LOCAL_RANK=1 OMPI_COMM_WORLD_LOCAL_SIZE=2", 1, false},
		{"", 1, false},
	}
	for _, tt := range tests {
		if got := divided(strings.Fields(tt.environ), tt.n); got != tt.want {
			t.Errorf("%q with %d devices: %v, want %v", tt.environ, tt.n, got, tt.want)
		}
	}
}

func TestDetectScheduler(t *testing.T) {
	tests := []struct{ environ, allocation, want string }{
		{"HOME=/ LOCAL_RANK_X=1", "", "null"},
		{"SLURM_JOB_ID=91 SLURM_STEP_ID=0 SLURM_PROCID=5 SLURM_LOCALID=1 SLURMD_NODENAME=n2 SLURM_STEP_GPUS=2,3 SLURM_ARRAY_TASK_ID=4 SLURM_RESTART_COUNT=1", "SLURM_JOB_ID",
			`{"kind":"slurm","job_id":"91","step_id":"0","array_task":"4","rank":"5","local_rank":"1","node":"n2","job_gpus":null,"step_gpus":"2,3","restarts":"1"}`},
		{"PBS_JOBID=7.host OMPI_COMM_WORLD_RANK=3 OMPI_COMM_WORLD_LOCAL_RANK=1", "PBS_JOBID",
			`{"kind":"pbs","job_id":"7.host","step_id":null,"array_task":null,"rank":"3","local_rank":"1","node":null,"job_gpus":null,"step_gpus":null,"restarts":null}`},
		{"FLUX_JOB_ID=f2 FLUX_TASK_RANK=0 FLUX_TASK_LOCAL_ID=0", "FLUX_JOB_ID",
			`{"kind":"flux","job_id":"f2","step_id":null,"array_task":null,"rank":"0","local_rank":"0","node":null,"job_gpus":null,"step_gpus":null,"restarts":null}`},
		{"RANK=1 LOCAL_RANK=1 LOCAL_WORLD_SIZE=2", "",
			`{"kind":"torchrun","job_id":null,"step_id":null,"array_task":null,"rank":"1","local_rank":"1","node":null,"job_gpus":null,"step_gpus":null,"restarts":null}`},
		{"LSB_JOBID=12", "LSB_JOBID",
			`{"kind":"lsf","job_id":"12","step_id":null,"array_task":null,"rank":null,"local_rank":null,"node":null,"job_gpus":null,"step_gpus":null,"restarts":null}`},
		{"JOB_ID=1", "", "null"}, // many programs use that name; Grid Engine sets another beside it
		{"JOB_ID=1 SGE_TASK_ID=undefined", "JOB_ID",
			`{"kind":"sge","job_id":"1","step_id":null,"array_task":null,"rank":null,"local_rank":null,"node":null,"job_gpus":null,"step_gpus":null,"restarts":null}`},
	}
	for _, tt := range tests {
		environ := strings.Fields(tt.environ)
		got, err := json.Marshal(DetectScheduler(environ))
		if err != nil || string(got) != tt.want {
			t.Errorf("%s:\n got %s, %v\nwant %s", tt.environ, got, err, tt.want)
		}
		if a := InAllocation(environ); a != tt.allocation {
			t.Errorf("%s: allocation %q, want %q", tt.environ, a, tt.allocation)
		}
	}
}
