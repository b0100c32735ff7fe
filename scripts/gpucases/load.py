# Loads the card for the readings: imports first, begins when the file GO is there,
# says so with the file ON, and ends when STOP is there or after half a minute.
import pathlib
import sys
import time

import torch

go, on, stop = (pathlib.Path(sys.argv[1]) / name for name in ("GO", "ON", "STOP"))
deadline = time.monotonic() + 90
while not go.exists() and time.monotonic() < deadline:
    time.sleep(0.05)
a = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
deadline = time.monotonic() + 30
while not stop.exists() and time.monotonic() < deadline:
    for _ in range(50):
        b = a @ a
    torch.cuda.synchronize()
    on.touch()
