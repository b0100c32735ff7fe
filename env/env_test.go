package env

import (
	"slices"
	"strings"
	"testing"
)

var (
	cuda   = []Variable{{Name: "CUDA_VISIBLE_DEVICES", Forms: []string{"index", "GPU-[0-9a-f-]+", "MIG-.+"}, Alone: "MIG-.+"}}
	rocm   = []Variable{{Name: "HIP_VISIBLE_DEVICES", Forms: []string{"index", "GPU-[0-9a-f]{16}"}, None: "-1"}, {Name: "ROCR_VISIBLE_DEVICES", Forms: []string{"index", "GPU-[0-9a-f]+"}, Under: true}}
	ascend = []Variable{{Name: "ASCEND_RT_VISIBLE_DEVICES", Forms: []string{"index"}, Order: "ascending"}, {Name: "NPU_VISIBLE_DEVICES", Forms: []string{"index"}, Order: "ascending"}}
	mlu    = []Variable{{Name: "CN_VISIBLE_DEVICES", Forms: []string{"index"}}, {Name: "MLU_VISIBLE_DEVICES", Forms: []string{"index"}}}
)

func TestChoose(t *testing.T) {
	four := "CUDA_VISIBLE_DEVICES=2,3 ROCR_VISIBLE_DEVICES=2,3 ZE_AFFINITY_MASK=2,3 GPU_DEVICE_ORDINAL=2,3"
	tests := []struct {
		name       string
		vars       []Variable
		environ    string
		device     string
		allocation string
		want       string // "all", "none", a list, or "error: part of the text"
		warning    string
	}{
		{"nothing asked, nothing inherited", cuda, "", "", "", "all", ""},
		{"inherited is kept", cuda, "CUDA_VISIBLE_DEVICES=2,0", "", "", "2,0", ""},
		{"inherited empty stays no device", cuda, "CUDA_VISIBLE_DEVICES=", "", "", "none", ""},
		{"inherited empty on HIP is no device too", rocm, "HIP_VISIBLE_DEVICES=", "", "", "none", ""},
		{"the first of two entries counts, as with getenv", cuda, "CUDA_VISIBLE_DEVICES=1 CUDA_VISIBLE_DEVICES=2", "", "", "1", ""},
		{"CUDA stops at a negative entry", cuda, "CUDA_VISIBLE_DEVICES=0,2,-1,1", "", "", "0,2", ""},
		{"minus one first hides all", cuda, "CUDA_VISIBLE_DEVICES=-1", "", "", "none", ""},
		{"old Slurm's word for no device", cuda, "CUDA_VISIBLE_DEVICES=NoDevFiles", "", "", "none", ""},
		{"newer Slurm writes UUIDs", cuda, "CUDA_VISIBLE_DEVICES=GPU-1a,GPU-2b", "", "", "GPU-1a,GPU-2b", ""},
		{"foreign mask is not ours", rocm, "CUDA_VISIBLE_DEVICES=7", "", "", "all", ""},
		{"stale CUDA beside Slurm's ROCR", rocm, "CUDA_VISIBLE_DEVICES=7 ROCR_VISIBLE_DEVICES=0", "", "SLURM_JOB_ID", "0", ""},
		{"HIP counts within ROCR", rocm, "ROCR_VISIBLE_DEVICES=4,5,6,7 HIP_VISIBLE_DEVICES=0,2", "", "", "4,6", ""},
		{"HIP beyond ROCR leaves nothing", rocm, "ROCR_VISIBLE_DEVICES=1 HIP_VISIBLE_DEVICES=1", "", "", "error: counts within ROCR_VISIBLE_DEVICES=1", ""},
		{"HIP hides all above ROCR", rocm, "ROCR_VISIBLE_DEVICES=1 HIP_VISIBLE_DEVICES=-1", "", "", "none", ""},
		{"ascend is sorted, blanks dropped", ascend, "ASCEND_RT_VISIBLE_DEVICES=3,~1", "", "", "1,3", ""},
		{"ascend takes no UUID", ascend, "", "GPU-1", "", "error: takes an index", ""},
		{"ascend takes no range", ascend, "", "0-2", "", "error: takes an index", ""},
		{"CN_ outranks MLU_", mlu, "MLU_VISIBLE_DEVICES=1 CN_VISIBLE_DEVICES=2", "", "", "2", ""},
		{"MLU_ alone", mlu, "MLU_VISIBLE_DEVICES=1", "", "", "1", ""},
		{"explicit list", cuda, "", "2, 3", "", "2,3", ""},
		{"leading zeros", cuda, "", "02", "", "2", ""},
		{"twice the same", cuda, "", "1,1", "", "error: twice", ""},
		{"negative", cuda, "", "-1", "", "error: takes an index", ""},
		{"empty entry", cuda, "", "1,,2", "", "error: takes an index", ""},
		{"overlong", cuda, "", "99999999999999999999", "", "error: takes an index", ""},
		{"two MIG instances", cuda, "", "MIG-a,MIG-b", "", "error: only entry", ""},
		{"one MIG instance", cuda, "", "MIG-a", "", "MIG-a", ""},
		{"none", cuda, "CUDA_VISIBLE_DEVICES=1", "none", "SLURM_JOB_ID", "none", ""},
		{"outside the mask, no allocation", cuda, "CUDA_VISIBLE_DEVICES=0,1", "5", "", "5", "leaves the inherited mask 0,1"},
		{"outside the allocation", cuda, "CUDA_VISIBLE_DEVICES=0,1", "5", "SLURM_JOB_ID", "error: outside the allocation (SLURM_JOB_ID)", ""},
		{"inside the allocation", cuda, "CUDA_VISIBLE_DEVICES=0,1", "1", "SLURM_JOB_ID", "1", ""},
		{"any device in an empty allocation", cuda, "CUDA_VISIBLE_DEVICES=", "0", "SLURM_JOB_ID", "error: outside", ""},
		{"four equal variables are an allocation of any backend", ascend, four, "", "SLURM_JOB_ID", "2,3", ""},
		{"the same outside of Slurm means nothing", ascend, four, "", "", "all", ""},
		{"an unreadable inherited mask", cuda, "CUDA_VISIBLE_DEVICES=x", "", "", "error: CUDA_VISIBLE_DEVICES=x", ""},
		{"is replaced by an explicit device", cuda, "CUDA_VISIBLE_DEVICES=x", "1", "", "1", ""},
		{"but not in an allocation", cuda, "CUDA_VISIBLE_DEVICES=x", "1", "PBS_JOBID", "error: CUDA_VISIBLE_DEVICES=x", ""},
		{"no variable to write", nil, "", "0", "", "error: no visibility variable", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var environ []string
			for f := range strings.SplitSeq(tt.environ, " ") {
				environ = append(environ, strings.ReplaceAll(f, "~", " "))
			}
			c, err := Choose(tt.vars, environ, tt.device, tt.allocation, nil)
			if want, isErr := strings.CutPrefix(tt.want, "error: "); isErr {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Fatalf("got %q, %v; want an error with %q", c.Mask, err, want)
				}
				return
			}
			got := c.Mask.String()
			if c.Mask == nil {
				got = "all"
			}
			if err != nil || got != tt.want {
				t.Fatalf("got %q, %v; want %q", got, err, tt.want)
			}
			if (tt.warning == "") != (c.Warning == "") || !strings.Contains(c.Warning, tt.warning) {
				t.Errorf("warning %q, want %q", c.Warning, tt.warning)
			}
		})
	}
}

func TestChooseAcrossForms(t *testing.T) {
	same := func(a, b string) bool { return a == "1" && b == "GPU-1b" }
	environ := []string{"CUDA_VISIBLE_DEVICES=1"}
	if c, err := Choose(cuda, environ, "GPU-1b", "SLURM_JOB_ID", same); err != nil || c.Mask.String() != "GPU-1b" {
		t.Errorf("a UUID of a device in the mask: %v, %v", c, err)
	}
	if _, err := Choose(cuda, environ, "GPU-2c", "SLURM_JOB_ID", same); err == nil {
		t.Error("a UUID of another device must be refused")
	}
}

func TestBuildWritesEachLayerOnce(t *testing.T) {
	environ := []string{"A=1", "ROCR_VISIBLE_DEVICES=1", "CUDA_VISIBLE_DEVICES=7", "odd", "A=2", "HIP_VISIBLE_DEVICES=0", "NVIDIA_VISIBLE_DEVICES=all", "Z=\xff"}
	set := []Setting{{Name: "GEMS_VENDOR", Value: "amd"}}
	for _, tt := range []struct {
		mask Mask
		want []string
	}{
		{nil, []string{"A=1", "odd", "A=2", "Z=\xff", "GEMS_VENDOR=amd"}},
		{Mask{}, []string{"A=1", "odd", "A=2", "Z=\xff", "HIP_VISIBLE_DEVICES=-1", "GEMS_VENDOR=amd"}},
		{Mask{"1"}, []string{"A=1", "odd", "A=2", "Z=\xff", "HIP_VISIBLE_DEVICES=1", "GEMS_VENDOR=amd"}},
	} {
		got, _ := Build(environ, Plan{Visibility: rocm, Mask: tt.mask, Set: set})
		if !slices.Equal(got, tt.want) {
			t.Errorf("mask %v:\n got %q\nwant %q", tt.mask, got, tt.want)
		}
	}
	got, _ := Build(environ, Plan{Visibility: rocm, Mask: Mask{"1"}, Keep: []string{"HIP_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES"}})
	if want := []string{"A=1", "odd", "A=2", "HIP_VISIBLE_DEVICES=0", "NVIDIA_VISIBLE_DEVICES=all", "Z=\xff"}; !slices.Equal(got, want) {
		t.Errorf("--keep: got %q, want %q", got, want)
	}
}

func TestBuildReportsChanges(t *testing.T) {
	environ := []string{"CUDA_VISIBLE_DEVICES=0", "HIP_VISIBLE_DEVICES=3", "CUDA_DEVICE_ORDER=FASTEST_FIRST", "ZL_BACKEND=cuda"}
	_, got := Build(environ, Plan{Visibility: cuda, Mask: Mask{"2"}, Set: []Setting{
		{Name: "CUDA_DEVICE_ORDER", Value: "PCI_BUS_ID", UnlessSet: true}, {Name: "ZL_BACKEND", Value: "cuda"}, {Name: "ZL_DEVICE", Value: "2"}}})
	show := func(p *string) string {
		if p == nil {
			return "(unset)"
		}
		return *p
	}
	var lines []string
	for _, c := range got {
		lines = append(lines, c.Name+": "+show(c.Before)+" -> "+show(c.After))
	}
	want := []string{"CUDA_VISIBLE_DEVICES: 0 -> 2", "HIP_VISIBLE_DEVICES: 3 -> (unset)", "ZL_DEVICE: (unset) -> 2"}
	if !slices.Equal(lines, want) {
		t.Errorf("got %q, want %q", lines, want)
	}
}

// FuzzBuild holds the promise of the package: nothing cleared survives, all
// else keeps its bytes and order, and the caller's slice is not written to.
func FuzzBuild(f *testing.F) {
	f.Add("CUDA_VISIBLE_DEVICES=0\nPATH=/bin\n=odd\nnoequals\nPATH=/x\nROCR_VISIBLE_DEVICES=1", "1")
	f.Add("\xff=\xfe\nGEMS_VENDOR=amd\nGEMS_VENDOR=nvidia\nARCH=x86_64", "")
	f.Fuzz(func(t *testing.T, lines, device string) {
		environ := strings.Split(lines, "\n")
		original := slices.Clone(environ)
		plan := Plan{Visibility: rocm, Set: []Setting{{Name: "ZL_BACKEND", Value: "rocm"}}}
		if device != "" {
			plan.Mask = Mask{device}
		}
		got, _ := Build(environ, plan)
		if !slices.Equal(environ, original) {
			t.Fatal("the input was changed")
		}
		cleared := append(ClearedNames(), "ZL_BACKEND")
		var want []string
		for _, kv := range environ {
			name, _, ok := strings.Cut(kv, "=")
			if !ok || !slices.Contains(cleared, name) {
				want = append(want, kv)
			}
		}
		if device != "" {
			want = append(want, "HIP_VISIBLE_DEVICES="+device)
		}
		if want = append(want, "ZL_BACKEND=rocm"); !slices.Equal(got, want) {
			t.Fatalf("got %q\nwant %q", got, want)
		}
	})
}

// FuzzParse: what is accepted can be written and read back as the same mask.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"0", "2,3", "GPU-0123456789abcdef", "01, 2", "none", "-1", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, list string) {
		for _, vars := range [][]Variable{cuda, rocm, ascend} {
			mask, err := vars[0].Parse(list)
			if err != nil {
				continue
			}
			again, err := vars[0].Inherit(vars[0].Value(mask))
			if err != nil || !slices.Equal(mask, again) {
				t.Fatalf("%q: %q read back as %q, %v", list, mask, again, err)
			}
		}
	})
}
