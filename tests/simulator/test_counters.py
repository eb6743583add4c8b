"""Tests that ``counters.def`` lists all counters that the Python records and the totals of a report have."""

from __future__ import annotations

import dataclasses

import pytest

from grader.execution.build.build import compile_kernel
from grader.simulator import counters, report_format
from grader.simulator.line_counters import LineCounters
from tests.simulator.corpus_kernels import Simulation
from tests.simulator.harness import KERNELS

SOURCE = KERNELS / "operations.cu"
TENSOR = {f"tensor_operations_{kind}" for kind in report_format.TENSOR_TYPES}
OF_LINES = {"file", "line", "source", "accesses", "constant_requests", "barriers", "worst_ways"}
"""The fields of a line that are not summed over the lines of a report."""
LANES = {"executions", "warp_executions", "possible_lanes"}
"""The fields of a line from which active_lanes is computed."""


def test_a_site_has_the_counters_of_the_table() -> None:
    assert [*report_format.Site.__struct_fields__] == ["site", "space", "access", "size", *counters.SITE]


def test_kernels_and_runs_have_the_counters_of_the_table() -> None:
    assert {*counters.KERNEL} <= {*report_format.Kernel.__struct_fields__}
    assert {*counters.RUN} <= {*report_format.Report.__struct_fields__}


def test_a_line_has_the_counters_of_the_table() -> None:
    names = {item.name for item in dataclasses.fields(LineCounters)}
    assert names == {*counters.LINE, *counters.OPERATION} | OF_LINES | LANES


def test_names_are_unique_and_described() -> None:
    kinds = (counters.KERNEL, counters.RUN, counters.LINE, counters.OPERATION, counters.TOTAL)
    assert len(counters.TOTALS) == sum(map(len, kinds))
    entries = counters.FILE.read_text().split("#undef")[0].split("#endif\n\n")[1]
    assert sum(line[:1].isalpha() for line in entries.splitlines()) == len(counters.TOTALS) + len(counters.SITE)
    for name, says in counters.TOTALS.items():
        assert says.strip() == says and "  " not in says and f"{name} " in counters.as_text()


@pytest.mark.parametrize("operations", [False, True])
def test_a_report_has_the_totals_of_the_table(operations: bool) -> None:
    kernel = compile_kernel(SOURCE, "cpu", checks=True, operations=operations)
    error, report, _ = Simulation(kernel.libsim).run(kernel, 96, "dot", SOURCE, workers=1)
    assert error == 0
    of_operations = {*counters.OPERATION, "active_lanes"}
    assert {*report.totals} == {*counters.TOTALS} - (set() if operations else of_operations) | TENSOR
