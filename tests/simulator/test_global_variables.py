"""Tests of ``__device__`` and ``__constant__`` variables: their values, and accesses just past the end."""

from __future__ import annotations

import functools
import re

import pytest

from grader.execution.build.build import BuiltKernel, compile_kernel
from grader.verdict.wording.findings import text
from tests.simulator.corpus_kernels import Simulation
from tests.simulator.harness import COMPILERS, KERNELS

SOURCE = KERNELS / "global_variables.cu"
READ = re.findall(r"void read_(\w+)\(", SOURCE.read_text())


@functools.cache
def built(compiler: str) -> BuiltKernel:
    return compile_kernel(SOURCE, "cpu", checks=True, compiler=compiler)


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("launcher", [f"read_{name}" for name in READ] + ["write_written"])
def test_the_element_past_the_end_belongs_to_no_variable(launcher: str, compiler: str) -> None:
    kernel = built(compiler)
    simulation = Simulation(kernel.libsim)
    error, report, _ = simulation.run(kernel, 8, launcher, SOURCE)
    assert (error, report.findings) == (0, [])
    _, report, _ = simulation.run(kernel, 9, launcher, SOURCE)
    findings = [f for f in report.findings if f.kind == "out_of_bounds"]
    assert len(findings) == 1, [text(f) for f in report.findings]
    name = launcher.partition("_")[2]
    assert "0 bytes past the end of the __" in text(findings[0])
    assert f"variable {name} (" in text(findings[0]).replace("inner::", "")
    assert "thread (8, 0, 0)" in text(findings[0])


@pytest.mark.parametrize("compiler", COMPILERS)
def test_values_types_and_symbols(compiler: str) -> None:
    kernel = built(compiler)
    error, report, out = Simulation(kernel.libsim).run(kernel, 6, "values", SOURCE)
    assert (error, report.findings) == (0, [])
    assert list(out) == [3 + 4 + 5 + 1, 8, 7, 9, 7, 6]
