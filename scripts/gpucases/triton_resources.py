#: class = recoverable
#: root = out of resource
#: needs = torch triton
import torch
import triton
import triton.language as tl


@triton.jit
def big(p, N: tl.constexpr):
    i = tl.arange(0, N)
    a = tl.load(p + i[:, None] * N + i[None, :])
    tl.store(p + i[:, None] * N + i[None, :], tl.dot(a, tl.trans(a)))


def test_more_shared_memory_than_there_is():
    big[(1,)](torch.ones(256 * 256, device="cuda"), N=256)


if __name__ == "__main__":
    test_more_shared_memory_than_there_is()
