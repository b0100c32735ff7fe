# A kernel far longer than the limit; it ends by itself after two minutes, so that a
# zlexec that fails to stop it does not block the card for good.
#: flags = --timeout 15s --grace 3s
#: class = none
#: code = 124
#: child = SIGTERM|SIGKILL
#: timed_out = true
#: stdout = the kernel runs
#: alone = yes
#: limit = 60
#: modes = bare pytest-s
#: needs = torch
import torch


def test_kernel_that_does_not_end():
    torch.ones(1, device="cuda")
    torch.cuda._sleep(1 << 38)
    print("the kernel runs", flush=True)
    torch.cuda.synchronize()


if __name__ == "__main__":
    test_kernel_that_does_not_end()
