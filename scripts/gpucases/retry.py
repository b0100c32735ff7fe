# Honours ZL_ENABLE_CUDAGRAPH; with --retry-poisoned it really ends green.
#: modes = bare pytest
#: needs = torch
#: [retry_poisoned]
#: flags = --retry-poisoned
#: class = none
#: code = 0
#: child = 0
#: attempts = 2
#: [no_retry]
#: class = poisoned
#: attempts = 1
import os

import torch


def test_benchmark():
    x = torch.ones(8, device="cuda")
    if os.environ.get("ZL_ENABLE_CUDAGRAPH") != "0":
        with torch.cuda.graph(torch.cuda.CUDAGraph()):
            x.sum().item()
    assert x.sum().item() == 8


if __name__ == "__main__":
    test_benchmark()
