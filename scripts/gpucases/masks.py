# What torch sees is what --device says, whatever masks the parent had.
#: modes = bare
#: needs = torch
#: class = none
#: code = 0
#: child = 0
#: [mask_foreign]
#: env = HIP_VISIBLE_DEVICES=3 ROCR_VISIBLE_DEVICES=5 ASCEND_RT_VISIBLE_DEVICES=6 CUDA_VISIBLE_DEVICES=7
#: stdout = devices 1 mask 0 hip None ascend None
#: [mask_uuid]
#: device = {uuid}
#: stdout = devices 1 mask GPU-
#: [mask_none]
#: device = none
#: stdout = devices 0
#: readings = any
#: [mask_kept]
#: env = CUDA_VISIBLE_DEVICES=0 HIP_VISIBLE_DEVICES=3
#: device =
#: stdout = devices 1 mask 0 hip None
import os

import torch

mask = os.environ.get
print("devices", torch.cuda.device_count(), "mask", mask("CUDA_VISIBLE_DEVICES"),
      "hip", mask("HIP_VISIBLE_DEVICES"), "ascend", mask("ASCEND_RT_VISIBLE_DEVICES"))
