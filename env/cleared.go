// Package env builds the environment of the command: it removes every
// visibility variable that another vendor's runtime could read, and writes the
// mask of the chosen backend as that backend's runtime reads it. It works on
// lists of strings alone: nothing here reads or changes this process's own
// environment.
package env

import "slices"

// Tier says who reads a variable, and so what is done with it.
type Tier int

const (
	// Runtime variables are read in-process by a device runtime or a framework,
	// or outrank or renumber what one reads. They are always cleared.
	Runtime Tier = 1
	// Container variables are read by a container runtime when it makes the
	// container, but some code takes them for process masks. They are cleared;
	// that does not undo the container's own masking.
	Container Tier = 2
	// Reported variables change what a run means without choosing devices. They
	// are named with -v and left alone.
	Reported Tier = 3
)

// Known is one variable that this package knows, with the reason.
type Known struct {
	Name string
	Tier Tier
	Why  string
}

// Variables returns every known variable of all tiers, with the program or page
// that shows who reads it.
func Variables() []Known {
	return []Known{
		{"CUDA_VISIBLE_DEVICES", Runtime, "read by CUDA, by HIP, and by most CUDA-alike runtimes (ROCm/clr rocdevice.cpp, torch_mlu)"},
		{"CUDA_DEVICE_ORDER", Runtime, "changes what a CUDA index means (CUDA programming guide, environment variables)"},
		{"HIP_VISIBLE_DEVICES", Runtime, "two layers of one runtime, each renumbers (ROCm/clr, ROCR-Runtime amd_filter_device.h)"},
		{"ROCR_VISIBLE_DEVICES", Runtime, "two layers of one runtime, each renumbers (ROCm/clr, ROCR-Runtime amd_filter_device.h)"},
		{"GPU_DEVICE_ORDINAL", Runtime, "set by Slurm beside the others; OpenCL reads it (Slurm gres.conf)"},
		{"HSA_CU_MASK", Runtime, "its indices are resolved after ROCR_VISIBLE_DEVICES"},
		{"MUSA_VISIBLE_DEVICES", Runtime, "the MUSA driver's mask (torch_musa quick start)"},
		{"ASCEND_RT_VISIBLE_DEVICES", Runtime, "CANN's mask, and an index into it (CANN envref)"},
		{"ASCEND_DEVICE_ID", Runtime, "CANN's mask, and an index into it (CANN envref)"},
		{"NPU_VISIBLE_DEVICES", Runtime, "written beside the CANN mask by FlagGems tools and gpustack"},
		{"CN_VISIBLE_DEVICES", Runtime, "torch_mlu reads CN_ before MLU_"},
		{"MLU_VISIBLE_DEVICES", Runtime, "torch_mlu reads CN_ before MLU_"},
		{"MACA_VISIBLE_DEVICES", Runtime, "MetaX (FlagGems tools/run_tests.py, vLLM-metax)"},
		{"ILUVATAR_VISIBLE_DEVICES", Runtime, "Iluvatar (FlagGems tools/run_tests.py)"},
		{"XPU_VISIBLE_DEVICES", Runtime, "Kunlunxin (vLLM-Kunlun env_vars.md)"},
		{"TOPS_VISIBLE_DEVICES", Runtime, "Enflame (torch_gcu)"},
		{"TXDA_VISIBLE_DEVICES", Runtime, "TsingMicro and Sunrise (FlagGems tools/run_tests.py)"},
		{"TANG_VISIBLE_DEVICES", Runtime, "TsingMicro and Sunrise (FlagGems tools/run_tests.py)"},
		{"ZE_AFFINITY_MASK", Runtime, "Level Zero and SYCL masks, and what numbers them (level-zero-spec PROG.rst)"},
		{"ONEAPI_DEVICE_SELECTOR", Runtime, "Level Zero and SYCL masks, and what numbers them (level-zero-spec PROG.rst)"},
		{"SYCL_DEVICE_FILTER", Runtime, "Level Zero and SYCL masks, and what numbers them (level-zero-spec PROG.rst)"},
		{"ZE_FLAT_DEVICE_HIERARCHY", Runtime, "Level Zero and SYCL masks, and what numbers them (level-zero-spec PROG.rst)"},
		{"ZE_ENABLE_PCI_ID_DEVICE_ORDER", Runtime, "Level Zero and SYCL masks, and what numbers them (level-zero-spec PROG.rst)"},
		{"HABANA_VISIBLE_MODULES", Runtime, "Gaudi module ids (docs.habana.ai, Ray hpu.py)"},
		{"HLS_MODULE_ID", Runtime, "Gaudi module ids (docs.habana.ai, Ray hpu.py)"},
		{"NEURON_RT_VISIBLE_CORES", Runtime, "Neuron cores (AWS Neuron runtime documentation)"},
		{"NEURON_RT_NUM_CORES", Runtime, "Neuron cores (AWS Neuron runtime documentation)"},
		{"TPU_VISIBLE_CHIPS", Runtime, "TPU chips, and the bounds that must match them (Ray tpu.py)"},
		{"TPU_VISIBLE_DEVICES", Runtime, "TPU chips, and the bounds that must match them (Ray tpu.py)"},
		{"TPU_CHIPS_PER_HOST_BOUNDS", Runtime, "TPU chips, and the bounds that must match them (Ray tpu.py)"},
		{"TPU_HOST_BOUNDS", Runtime, "TPU chips, and the bounds that must match them (Ray tpu.py)"},
		{"TPU_CHIPS_PER_PROCESS_BOUNDS", Runtime, "TPU chips, and the bounds that must match them (Ray tpu.py)"},
		{"TPU_PROCESS_BOUNDS", Runtime, "TPU chips, and the bounds that must match them (Ray tpu.py)"},
		{"RBLN_DEVICES", Runtime, "Rebellions, Biren, Tecorigin (Ray, DeepSpeed accelerators)"},
		{"SUPA_VISIBLE_DEVICES", Runtime, "Rebellions, Biren, Tecorigin (Ray, DeepSpeed accelerators)"},
		{"SDAA_VISIBLE_DEVICES", Runtime, "Rebellions, Biren, Tecorigin (Ray, DeepSpeed accelerators)"},
		{"GEMS_VENDOR", Runtime, "FlagGems takes the first of these that is present (device_finder.py)"},
		{"FLAGGEMS_VENDOR", Runtime, "FlagGems takes the first of these that is present (device_finder.py)"},
		{"GEMS_BACKEND", Runtime, "FlagGems takes the first of these that is present (device_finder.py)"},
		{"FLAGGEMS_BACKEND", Runtime, "FlagGems takes the first of these that is present (device_finder.py)"},
		{"PPU_SDK", Runtime, "its presence alone makes FlagGems choose thead over GEMS_VENDOR (device_finder.py)"},
		{"NVIDIA_VISIBLE_DEVICES", Container, "read by a container runtime when it makes the container"},
		{"AMD_VISIBLE_DEVICES", Container, "read by a container runtime when it makes the container"},
		{"MTHREADS_VISIBLE_DEVICES", Container, "read by a container runtime when it makes the container"},
		{"METHERDS_VISIBLE_DEVICES", Container, "read by a container runtime when it makes the container"},
		{"ASCEND_VISIBLE_DEVICES", Container, "read by a container runtime when it makes the container"},
		{"CAMBRICON_VISIBLE_DEVICES", Container, "read by a container runtime when it makes the container"},
		{"CAMBRICON_SPLIT_VISIBLE_DEVICES", Container, "read by a container runtime when it makes the container"},
		{"HYGON_VISIBLE_DEVICES", Container, "read by a container runtime when it makes the container"},
		{"IX_VISIBLE_DEVICES", Container, "read by a container runtime when it makes the container"},
		{"IX_REPLICA_DEVICES", Container, "read by a container runtime when it makes the container"},
		{"ILUVATAR_COREX_VISIBLE_DEVICES", Container, "read by a container runtime when it makes the container"},
		{"ENFLAME_VISIBLE_DEVICES", Container, "read by a container runtime when it makes the container"},
		{"HABANA_VISIBLE_DEVICES", Container, "read by a container runtime when it makes the container"},
		{"ARCH", Reported, "FlagGems takes its last part for the device architecture and may drop tuned kernels"},
		{"FLAGTREE_BACKEND", Reported, "chooses Triton's toolchain"},
		{"TORCH_DEVICE_BACKEND_AUTOLOAD", Reported, "0 keeps torch from loading its device plugin, which FlagGems relies on"},
		{"CUDA_MPS_PIPE_DIRECTORY", Reported, "the MPS daemon may have renumbered the devices already"},
		{"LOCAL_RANK", Reported, "a launcher's rank; some frameworks choose a device by it"},
		{"RANK", Reported, "a launcher's rank; some frameworks choose a device by it"},
		{"WORLD_SIZE", Reported, "a launcher's rank; some frameworks choose a device by it"},
		{"DEVICE_ID", Reported, "a launcher's rank; some frameworks choose a device by it"},
		{"FLAGOS_DEVICE_CONTROL_ENV_VAR", Reported, "overrides the device of vllm-plugin-FL"},
	}
}

// ClearedNames returns the names of the variables that are cleared (tiers 1 and
// 2), sorted.
func ClearedNames() []string {
	var names []string
	for _, k := range Variables() {
		if k.Tier != Reported {
			names = append(names, k.Name)
		}
	}
	slices.Sort(names)
	return names
}
