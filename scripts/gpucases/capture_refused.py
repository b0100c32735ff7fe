#: stdout = everything works afterwards
#: root = Cannot copy between CPU and CUDA tensors
#: class = recoverable
#: needs = torch
#: [capture_refused]
#: [capture_refused_handled]
#: args = handled
#: modes = bare
#: code = 0
#: child = 0
#: [capture_refused_strict]
#: args = handled
#: modes = bare
#: flags = --strict
#: code = 80
#: child = 0
import sys

import torch


def test_copy_inside_a_capture():
    x, graph = torch.ones(8, device="cuda"), torch.cuda.CUDAGraph()
    try:
        with torch.cuda.graph(graph):
            torch.ones(8).to("cuda")
    except RuntimeError as err:
        refused = err
    torch.randn(8, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = x * 2
    graph.replay()
    assert y.sum().item() == 16
    print("everything works afterwards", flush=True)
    if "handled" not in sys.argv:
        raise refused
    print("RuntimeError:", refused, file=sys.stderr)


if __name__ == "__main__":
    test_copy_inside_a_capture()
