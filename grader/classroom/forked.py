"""The libraries of the process that all workers of a class are forked from: torch is in memory once.

Importing this is all that it is for. No thread may run at the fork, so the libraries below torch must not start theirs.
"""

from __future__ import annotations

import gc
import importlib
import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"
for name in (
    "torch",
    "grader.judge.driver",
    "grader.simulator.report",
    "grader.execution.runner.canary",
    "grader.classroom.worker",
):
    importlib.import_module(name)
# Looking for garbage would write to every page, and each worker get its own.
gc.collect()
gc.freeze()
