#: class = fatal
#: marker = cuda.
#: env = NCCL_SOCKET_IFNAME=lo
# With the context dead, a process that printed its verdict may hang in NCCL's exit for ever:
# the limit ends it, and the fatal marker still decides.
#: flags = --timeout 45s --grace 5s
#: timed_out = any
#: needs = torch
import tempfile

import torch
import torch.distributed as dist


def test_collective_after_an_assert():
    with tempfile.TemporaryDirectory() as d:
        dist.init_process_group("nccl", init_method=f"file://{d}/store", rank=0, world_size=1)
        x = torch.ones(8, device="cuda")
        x[torch.tensor([4096], device="cuda")]
        dist.all_reduce(x)
        torch.cuda.synchronize()


if __name__ == "__main__":
    test_collective_after_an_assert()
