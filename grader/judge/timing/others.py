"""Detects other processes that use a GPU during a measurement, with the driver's management library (NVML)."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from grader.execution.runner.client import Child

SETTLING = 1.0
"""The first seconds of a measurement, which are ignored: the driver's first samples are older than the measurement."""

BUSY_PERCENT = 10
"""The SM utilization from which another process disturbs a measurement. A graphical desktop uses less."""


@dataclass
class Others:
    """The other processes that used a GPU during a measurement."""

    known: bool = False
    """True if the driver reports processes. It does not with MIG, under WSL, or in a container with its own pids."""
    busy: set[int] = field(default_factory=set)
    """The ids of processes that disturbed the measurement, as the driver reports them."""


@contextlib.contextmanager
def watch(gpu: str) -> Iterator[Others]:
    """Watch the GPU with the UUID ``gpu`` during the context. The yielded object is filled in at its end."""
    others = Others()
    began = int((time.time() + SETTLING) * 1e6)
    try:
        yield others
    finally:
        with contextlib.suppress(ImportError):
            import pynvml

            with contextlib.suppress(pynvml.NVMLError):
                _ask(pynvml, gpu, began, others)


def _ask(nvml: Any, gpu: str, began: int, others: Others) -> None:
    nvml.nvmlInit()
    try:
        device = nvml.nvmlDeviceGetHandleByUUID(gpu)
        there = {process.pid for process in nvml.nvmlDeviceGetComputeRunningProcesses(device)}
        try:
            samples = nvml.nvmlDeviceGetProcessUtilization(device, began)
        except nvml.NVMLError_NotFound:  # raised if no process has used the GPU since ``began``
            samples = []
        others.known = os.getpid() in there
        ours = {os.getpid(), *Child.started}
        if others.known:
            others.busy = {s.pid for s in samples if s.timeStamp >= began and s.smUtil >= BUSY_PERCENT} - ours
    finally:
        nvml.nvmlShutdown()
