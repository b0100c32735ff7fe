#: class = poisoned
#: root = captur
#: stdout = the random generator is broken
#: needs = torch
import torch


def test_item_inside_a_capture():
    x, graph = torch.ones(8, device="cuda"), torch.cuda.CUDAGraph()
    try:
        with torch.cuda.graph(graph):
            x.sum().item()
    except RuntimeError as err:
        failed = err
    assert x.sum().item() == 8  # plain operations go on
    try:
        torch.randn(8, device="cuda")
    except RuntimeError as err:
        print("the random generator is broken:", err, flush=True)
    raise failed


if __name__ == "__main__":
    test_item_inside_a_capture()
