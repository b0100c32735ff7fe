# A script that swallows a device failure must not report its numbers.
#: class = fatal
#: marker = cuda.
#: code = 82
#: child = 0
#: modes = bare
#: needs = torch
import sys

import torch

try:
    torch.ones(8, device="cuda")[torch.tensor([4096], device="cuda")]
    torch.cuda.synchronize()
except RuntimeError as err:
    print("skipped:", err, file=sys.stderr)
