"""Recordings of the kernels in ``tests/simulator/kernels/recorded.cu``, for tests of the player."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from grader import load_kernel
from grader.execution.in_process.kernel import Kernel
from grader.simulator.recording import Recording
from grader.verdict.finding import Finding

FILE = Path(__file__).parents[2] / "simulator/kernels/recorded.cu"


@cache
def kernel() -> Kernel:
    return load_kernel(FILE)


def record(name: str, *arguments: Any) -> tuple[Recording, str, list[Finding]]:
    """Run a launcher with recording; return the recording, the source and the findings."""
    # Earlier tests in this process may have changed the settings.
    kernel()._simulator.configure(schedule="forward", workers="1")
    with kernel().recording():
        getattr(kernel(), f"run_{name}")(*arguments)
    report = kernel().report
    assert report.recording is not None
    return report.recording, kernel().source, report.findings
