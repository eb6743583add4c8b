"""Tests of counted floating-point operations and active lanes, with both compilers, against counts derived by hand."""

from __future__ import annotations

from functools import cache

import pytest

from grader.execution.build.build import compile_kernel
from grader.simulator.line_counters import LineCounters
from grader.simulator.report import Report
from tests.simulator.corpus_kernels import Simulation
from tests.simulator.harness import COMPILERS, KERNELS

SOURCE = KERNELS / "operations.cu"
LINES = SOURCE.read_text().splitlines()
N = 96


@cache
def built(compiler: str, operations: bool = True):
    return compile_kernel(SOURCE, "cpu", checks=True, operations=operations, compiler=compiler)


@cache
def report(compiler: str, launcher: str, workers: int = 1, operations: bool = True) -> Report:
    kernel = built(compiler, operations)
    error, found, _ = Simulation(kernel.libsim).run(kernel, N, launcher, SOURCE, workers=workers)
    assert error == 0
    return found


def line(found: Report, text: str) -> LineCounters:
    """Return the counters of the only line that contains the text."""
    (number,) = (i + 1 for i, row in enumerate(LINES) if text in row)
    return next(entry for entry in found.lines if entry.line == number)


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize(
    ("launcher", "flops", "text"),
    [
        ("dot", 64 * 2 * N, "// one product and one sum per iteration"),
        ("dot_partial", 80 * 2 * N, "// one product and one sum per iteration"),
        ("unrolled", 32 * 16, "// eight products and sums per thread"),
        ("odd", 32, "// one product in odd lanes"),
        ("odd_warps", 32, "// one product in odd warps"),
        ("early", 10, "// one division in the ten remaining lanes"),
        ("fused", 64, "// a fused multiply-add"),
    ],
)
def test_operations_are_counted_at_their_line(compiler, launcher, flops, text):
    found = report(compiler, launcher)
    assert found.totals["flops"] == flops
    assert line(found, text).flops == flops
    assert [kernel.totals["flops"] for kernel in found.kernels] == [flops]


@pytest.mark.parametrize("compiler", COMPILERS)
def test_operations_of_a_template_are_counted_in_the_template(compiler):
    found = report(compiler, "helper")
    assert line(found, "// SIZE products per call").flops == 32 * 5
    caller = line(found, "// one sum and one exponential")
    assert (caller.flops, caller.special_functions) == (32, 32)
    assert found.totals["special_functions"] == 32


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize(
    ("launcher", "text", "lanes", "diverges"),
    [
        ("odd", "// one product in odd lanes", 16, True),
        ("odd_warps", "// one product in odd warps", 32, False),
        ("early", "// one division in the ten remaining lanes", 10, True),
        ("dot", "// one product and one sum per iteration", 32, False),
        # Warps of 32 and of 8 threads, without inactive lanes.
        ("dot_partial", "// one product and one sum per iteration", 20, False),
    ],
)
def test_inactive_lanes(compiler, launcher, text, lanes, diverges):
    entry = line(report(compiler, launcher), text)
    assert entry.active_lanes == lanes
    assert entry.diverges == diverges


@pytest.mark.parametrize("compiler", COMPILERS)
def test_operations_of_halves_are_counted_without_their_emulation(compiler):
    found = report(compiler, "halves")
    assert (found.totals["flops"], found.totals["special_functions"]) == (32 * 2, 0)
    assert line(found, "__hmul(__hadd(a, b), b)").flops == 32 * 2


@pytest.mark.parametrize("compiler", COMPILERS)
def test_each_half_of_a_pair_counts(compiler):
    found = report(compiler, "pairs")
    assert line(found, "// four operations per thread").flops == 2 * 32 * 4
    entry = line(found, "// only hexp is a special function")
    assert (entry.flops, entry.special_functions) == (2 * 32 * (2 + 1), 2 * 32)  # hrsqrt has 2, the sum 1


@pytest.mark.parametrize("compiler", COMPILERS)
def test_conversions_between_integers_and_floating_point_numbers(compiler):
    found = report(compiler, "conversions")
    expected = {
        "// one conversion to an integer": 1,
        "// two conversions from integers": 2,
        "// one conversion from an integer to a half": 1,
        "// two conversions from a half to integers": 2,
        "// one conversion from an integer, in PTX": 1,
        "// no conversion counts: no integer": 0,
        "__ushort_as_half(0x6400 | (i & 15))": 0,
    }
    assert {text: line(found, text).conversions / 32 for text in expected} == expected
    assert found.totals["conversions"] == 32 * sum(expected.values())


@pytest.mark.parametrize("launcher", ["dot_partial", "odd", "helper"])
def test_two_workers_count_the_same(launcher):
    one, two = report("g++", launcher), report("g++", launcher, workers=2)
    assert one.totals == two.totals
    assert [entry.counters for entry in one.lines] == [entry.counters for entry in two.lines]


def test_operations_are_not_counted_without_a_request():
    found = report("g++", "dot", operations=False)
    assert "flops" not in found.totals
    assert all(entry.flops == entry.executions == 0 for entry in found.lines)
