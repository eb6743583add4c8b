"""Tests that passing a half by value from memory to a function, or returning it, counts as one access."""

from __future__ import annotations

import pytest

from grader.execution.build.build import compile_kernel
from tests.simulator.corpus_kernels import Simulation
from tests.simulator.harness import KERNELS

SOURCE = KERNELS / "half_by_value.cu"


@pytest.mark.parametrize("launcher", ["through_functions", "intrinsic"])
def test_every_half_is_read_and_written(launcher: str) -> None:
    kernel = compile_kernel(SOURCE, "cpu", checks=True)
    error, report, _ = Simulation(kernel.libsim).run(kernel, 64, launcher, SOURCE)
    assert error == 0
    assert not report.findings
    assert report.totals["global_read_bytes"] >= 64 * 2
    assert report.totals["global_written_bytes"] == 64 * 2
