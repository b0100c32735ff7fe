#: class = none
#: code = 0
#: child = 0
#: needs = torch triton flag_gems
#: modes = bare pytest
import flag_gems
import torch
import triton


def test_softmax():
    x = torch.randn(4096, 4096, device="cuda")
    want = torch.softmax(x, 1)
    with flag_gems.use_gems():
        torch.testing.assert_close(torch.softmax(x, 1), want)
        print(f"softmax: {triton.testing.do_bench(lambda: torch.softmax(x, 1)):.4f} ms")


if __name__ == "__main__":
    test_softmax()
