# A process that pytest captured takes the runtime's text with it when it aborts: no
# marker is left, and the signal (or the crash that xdist reports) is all there is.
#: class = fatal
#: root = illegal memory access|Assertion|device-side assert
#: child = SIGABRT
#: class.pytest = none
#: code.pytest = -6
#: class.xdist = none
#: code.xdist = 1
#: child.xdist = 1
#: needs = torch
import os
import sys

import torch


def test_abort_after_an_assert():
    try:
        torch.ones(8, device="cuda")[torch.tensor([4096], device="cuda")]
        torch.cuda.synchronize()
    except RuntimeError as err:
        print(err, file=sys.stderr, flush=True)
        os.abort()


if __name__ == "__main__":
    test_abort_after_an_assert()
