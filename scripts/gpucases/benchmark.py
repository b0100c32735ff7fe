# A kernel as Triton's tutorials have them, measured and checked against torch.
#: class = none
#: code = 0
#: child = 0
#: needs = torch triton
#: modes = bare pytest
import torch
import triton
import triton.language as tl


@triton.jit
def softmax(out, x, n, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    v = tl.load(x + row * n + i, mask=i < n, other=-float("inf"))
    e = tl.exp(v - tl.max(v, axis=0))
    tl.store(out + row * n + i, e / tl.sum(e, axis=0), mask=i < n)


def test_softmax():
    for n in (781, 4096):
        x = torch.randn(4096, n, device="cuda")
        out = torch.empty_like(x)
        run = lambda: softmax[(4096,)](out, x, n, BLOCK=triton.next_power_of_2(n))
        run()
        torch.testing.assert_close(out, torch.softmax(x, 1))
        ms = triton.testing.do_bench(run)
        print(f"softmax 4096x{n}: {ms:.4f} ms, {2 * x.numel() * 4 / ms / 1e6:.0f} GB/s")


if __name__ == "__main__":
    test_softmax()
