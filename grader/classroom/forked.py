"""The libraries of the process that all workers of a class are forked from, so that torch is in memory once.

This module is imported for its side effects. No thread may run at the fork, so OpenMP, OpenBLAS and MKL, which torch
uses, must not start threads.
"""

from __future__ import annotations

import gc
import importlib
import os
import signal

signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C ends the command, which then ends this process
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
# Garbage collection in a worker would write to every shared page, so each worker would copy all of them.
gc.collect()
gc.freeze()
