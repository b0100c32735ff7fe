#: class = fatal
#: marker = cuda.
#: root = Assertion|device-side assert
#: needs = torch
import torch


def test_index_out_of_range():
    rows = torch.ones(8, device="cuda")
    rows[torch.tensor([4096], device="cuda")]
    torch.cuda.synchronize()


if __name__ == "__main__":
    test_index_out_of_range()
