"""Reads and writes of structures that are passed or returned by value are checked and counted.

Compilers do not instrument the copy of a structure for a call, so such calls are inlined (host_defines.h).
"""

from __future__ import annotations

import functools
import shutil

import pytest

from grader.execution.build.build import BuiltKernel, compile_kernel
from tests.simulator.corpus_kernels import Simulation
from tests.simulator.harness import COMPILERS, KERNELS

SOURCE = KERNELS / "structures_by_value.cu"
THREADS = 8


@functools.cache
def built(compiler: str) -> BuiltKernel:
    return compile_kernel(SOURCE, "cpu", checks=True, compiler=compiler)


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize(
    ("launcher", "read", "written"),
    [
        ("read_waves", 2 * 12, 4),
        ("read_sum", 12, 4),
        ("read_descend", 12, 4),
        ("read_scaled", 32, 4),
        ("write_all_three", 0, 12),
        ("write_all_eight", 0, 32),
    ],
)
def test_every_byte_is_counted(launcher: str, read: int, written: int, compiler: str) -> None:
    kernel = built(compiler)
    error, report, _ = Simulation(kernel.libsim).run(kernel, 8 * THREADS, launcher, SOURCE)
    assert error == 0
    assert report.totals["global_read_bytes"] == read * THREADS
    assert report.totals["global_written_bytes"] == written * THREADS


@pytest.mark.parametrize("compiler", COMPILERS)
def test_the_structure_past_the_end_is_found(compiler: str) -> None:
    kernel = built(compiler)
    _, report, _ = Simulation(kernel.libsim).run(kernel, 8 * THREADS, "read_past_the_end", SOURCE)
    findings = [f for f in report.findings if f.kind == "out_of_bounds"]
    assert findings
    # g++ reports the line of the call, clang++ the line of the parameter, or of its use in an inlined function.
    expected = {
        next(number for number, line in enumerate(SOURCE.read_text().splitlines(), 1) if text in line)
        for text in ("threadIdx.x + 1", "float scaled(Eight p)", "total += p.v[i] * N")
    }
    assert {f.line for f in findings} <= expected
    assert all(f.thread == [7, 0, 0] for f in findings)


@pytest.mark.skipif(not shutil.which("g++"), reason="no g++")
@pytest.mark.parametrize(
    ("launcher", "loads"), [("three_apart", 3), ("two_apart", 2), ("pair", 1), ("pack", 1), ("read_scaled", 2)]
)
def test_requests_are_those_of_nvcc(launcher: str, loads: int) -> None:
    """Compare requests with nvcc's. Use g++, because clang++ splits structures into members before instrumentation.

    The expected numbers are those of ``ld.global`` in the output of ``nvcc -ptx``, except for the last launcher: an
    unaligned structure of 32 bytes is read in 16-byte accesses here, and in 4-byte accesses by nvcc.
    """
    kernel = built("g++")
    error, report, _ = Simulation(kernel.libsim).run(kernel, 8 * THREADS, launcher, SOURCE)
    assert error == 0
    assert sum(line.requests for line in report.lines) == loads + 1  # one request writes the result
