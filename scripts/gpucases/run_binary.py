# How pytest runs a compiled case: its command line is in GPUCASE.
import os
import shlex
import subprocess


def test_binary():
    subprocess.run(shlex.split(os.environ["GPUCASE"]), check=True)
