"""Faults of persistent kernels are reported at their lines, and right persistent kernels have no finding."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path

import pytest

from grader.execution.build.build import BuiltKernel, compile_kernel
from grader.verdict.wording.findings import text
from tests.simulator.corpus_kernels import Simulation, places
from tests.simulator.persistent_kernels import PRELUDE, Persistent, faulty_kernels, right_kernels

SEED = 16
N = 64
RIGHT, FAULTY = list(right_kernels(SEED)), list(faulty_kernels(SEED))


@functools.cache
def library(right: bool) -> BuiltKernel:
    """Return all kernels of one kind, built once."""
    kernels = RIGHT if right else FAULTY
    return compile_kernel(
        Path("persistent_kernels.cu").absolute(), "cpu", checks=True, text=PRELUDE + "".join(k.text for k in kernels)
    )


def named(kernels: Sequence[Persistent]) -> list[object]:
    return [pytest.param(kernel, id=kernel.name) for kernel in kernels]


@pytest.mark.parametrize("kernel", named(RIGHT))
def test_a_right_kernel_has_no_finding(kernel: Persistent) -> None:
    built = library(True)
    error, report, _ = Simulation(built.libsim).run(built, N, kernel.name, Path(f"{kernel.name}.cu"))
    assert not report.findings, "\n".join(map(text, report.findings))
    assert error == 0


@pytest.mark.parametrize("kernel", named(FAULTY))
def test_a_fault_is_found_at_its_line(kernel: Persistent) -> None:
    built = library(False)
    _, report, _ = Simulation(built.libsim).run(built, N, kernel.name, Path(f"{kernel.name}.cu"))
    found = {(line, finding.kind) for finding in report.findings for line in places(finding)}
    expected = {(line, kind) for line, kinds in kernel.marks.items() for kind in kinds}
    assert found and found <= expected, f"{found}, expected {expected}:\n" + "\n".join(map(text, report.findings))


def test_there_are_enough_kernels() -> None:
    assert len(RIGHT) >= 30 and len(FAULTY) >= 100
    assert len({kernel.text for kernel in RIGHT + FAULTY}) == len(RIGHT) + len(FAULTY)
