"""Run one version of the sum of squares three times for a profiler: ``profile_one.py VERSION``."""

import sys

import torch
from measure import HERE, STEPS, N, load_kernel, processors

kernel = load_kernel(HERE / "squares.cu", device="cuda")
width, loads, blocks = list(STEPS.values())[int(sys.argv[1]) - 1]
x = torch.zeros(N, device="cuda")
partials, out = torch.empty(16 * processors(), device="cuda"), torch.empty(1, device="cuda")
for _ in range(3):
    kernel.squares(x, partials, out, N, width, loads, blocks * processors())
torch.cuda.synchronize()
