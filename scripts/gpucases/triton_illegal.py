#: class = fatal
#: marker = cuda.illegal_access
#: root = illegal memory access|IllegalAddress
#: needs = torch triton
import torch
import triton
import triton.language as tl


@triton.jit
def far(p, offset):
    tl.store(p + offset, 1.0)


def test_store_far_outside():
    far[(1,)](torch.ones(8, device="cuda"), 1 << 41)
    torch.cuda.synchronize()


if __name__ == "__main__":
    test_store_far_outside()
