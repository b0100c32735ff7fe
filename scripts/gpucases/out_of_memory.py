#: class = recoverable
#: root = out of memory|OutOfMemory
#: needs = torch
import torch


def test_more_than_the_card_has():
    torch.empty(1 << 46, dtype=torch.uint8, device="cuda")


if __name__ == "__main__":
    test_more_than_the_card_has()
