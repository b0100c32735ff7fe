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
	var all []Known
	add := func(tier Tier, why string, names ...string) {
		for _, n := range names {
			all = append(all, Known{n, tier, why})
		}
	}
	add(Runtime, "read by CUDA, by HIP, and by most CUDA-alike runtimes (ROCm/clr rocdevice.cpp, torch_mlu)", "CUDA_VISIBLE_DEVICES")
	add(Runtime, "changes what a CUDA index means (CUDA programming guide, environment variables)", "CUDA_DEVICE_ORDER")
	add(Runtime, "two layers of one runtime, each renumbers (ROCm/clr, ROCR-Runtime amd_filter_device.h)", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES")
	add(Runtime, "set by Slurm beside the others; OpenCL reads it (Slurm gres.conf)", "GPU_DEVICE_ORDINAL")
	add(Runtime, "its indices are resolved after ROCR_VISIBLE_DEVICES", "HSA_CU_MASK")
	add(Runtime, "the MUSA driver's mask (torch_musa quick start)", "MUSA_VISIBLE_DEVICES")
	add(Runtime, "CANN's mask, and an index into it (CANN envref)", "ASCEND_RT_VISIBLE_DEVICES", "ASCEND_DEVICE_ID")
	add(Runtime, "written beside the CANN mask by FlagGems tools and gpustack", "NPU_VISIBLE_DEVICES")
	add(Runtime, "torch_mlu reads CN_ before MLU_", "CN_VISIBLE_DEVICES", "MLU_VISIBLE_DEVICES")
	add(Runtime, "MetaX (FlagGems tools/run_tests.py, vLLM-metax)", "MACA_VISIBLE_DEVICES")
	add(Runtime, "Iluvatar (FlagGems tools/run_tests.py)", "ILUVATAR_VISIBLE_DEVICES")
	add(Runtime, "Kunlunxin (vLLM-Kunlun env_vars.md)", "XPU_VISIBLE_DEVICES")
	add(Runtime, "Enflame (torch_gcu)", "TOPS_VISIBLE_DEVICES")
	add(Runtime, "TsingMicro and Sunrise (FlagGems tools/run_tests.py)", "TXDA_VISIBLE_DEVICES", "TANG_VISIBLE_DEVICES")
	add(Runtime, "Level Zero and SYCL masks, and what numbers them (level-zero-spec PROG.rst)", "ZE_AFFINITY_MASK", "ONEAPI_DEVICE_SELECTOR",
		"SYCL_DEVICE_FILTER", "ZE_FLAT_DEVICE_HIERARCHY", "ZE_ENABLE_PCI_ID_DEVICE_ORDER")
	add(Runtime, "Gaudi module ids (docs.habana.ai, Ray hpu.py)", "HABANA_VISIBLE_MODULES", "HLS_MODULE_ID")
	add(Runtime, "Neuron cores (AWS Neuron runtime documentation)", "NEURON_RT_VISIBLE_CORES", "NEURON_RT_NUM_CORES")
	add(Runtime, "TPU chips, and the bounds that must match them (Ray tpu.py)", "TPU_VISIBLE_CHIPS", "TPU_VISIBLE_DEVICES",
		"TPU_CHIPS_PER_HOST_BOUNDS", "TPU_HOST_BOUNDS", "TPU_CHIPS_PER_PROCESS_BOUNDS", "TPU_PROCESS_BOUNDS")
	add(Runtime, "Rebellions, Biren, Tecorigin (Ray, DeepSpeed accelerators)", "RBLN_DEVICES", "SUPA_VISIBLE_DEVICES", "SDAA_VISIBLE_DEVICES")
	add(Runtime, "FlagGems takes the first of these that is present (device_finder.py)", "GEMS_VENDOR", "FLAGGEMS_VENDOR", "GEMS_BACKEND", "FLAGGEMS_BACKEND")
	add(Runtime, "its presence alone makes FlagGems choose thead over GEMS_VENDOR (device_finder.py)", "PPU_SDK")
	add(Container, "read by a container runtime when it makes the container", "NVIDIA_VISIBLE_DEVICES", "AMD_VISIBLE_DEVICES",
		"MTHREADS_VISIBLE_DEVICES", "METHERDS_VISIBLE_DEVICES", "ASCEND_VISIBLE_DEVICES", "CAMBRICON_VISIBLE_DEVICES",
		"CAMBRICON_SPLIT_VISIBLE_DEVICES", "HYGON_VISIBLE_DEVICES", "IX_VISIBLE_DEVICES", "IX_REPLICA_DEVICES",
		"ILUVATAR_COREX_VISIBLE_DEVICES", "ENFLAME_VISIBLE_DEVICES", "HABANA_VISIBLE_DEVICES")
	add(Reported, "FlagGems takes its last part for the device architecture and may drop tuned kernels", "ARCH")
	add(Reported, "chooses Triton's toolchain", "FLAGTREE_BACKEND")
	add(Reported, "0 keeps torch from loading its device plugin, which FlagGems relies on", "TORCH_DEVICE_BACKEND_AUTOLOAD")
	add(Reported, "the MPS daemon may have renumbered the devices already", "CUDA_MPS_PIPE_DIRECTORY")
	add(Reported, "a launcher's rank; some frameworks choose a device by it", "LOCAL_RANK", "RANK", "WORLD_SIZE", "DEVICE_ID")
	add(Reported, "overrides the device of vllm-plugin-FL", "FLAGOS_DEVICE_CONTROL_ENV_VAR")
	return all
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
