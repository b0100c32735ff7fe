#: class = fatal
#: marker = cuda.
#: root = Assertion|device-side assert
#: needs = torch
import torch


def test_replay_with_a_bad_index():
    rows, index = torch.ones(8, device="cuda"), torch.zeros(1, dtype=torch.long, device="cuda")
    rows[index]
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        rows[index]
    graph.replay()
    torch.cuda.synchronize()
    index.fill_(4096)
    graph.replay()
    torch.cuda.synchronize()


if __name__ == "__main__":
    test_replay_with_a_bad_index()
