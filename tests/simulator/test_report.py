"""Tests of reports: texts of findings, their source lines, and how findings are merged."""

from __future__ import annotations

import ctypes
import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from grader.execution.build.build import BuiltKernel, compile_kernel, entry_point
from grader.simulator.places import source_lines
from grader.simulator.report import Report
from grader.verdict.wording.findings import fix, message, text
from tests.simulator.corpus_kernels import Simulation
from tests.simulator.harness import KERNELS

SOURCE = KERNELS / "findings.cu"
LINES = SOURCE.read_text().splitlines()


@cache
def built() -> tuple[BuiltKernel, Simulation]:
    kernel = compile_kernel(SOURCE, "cpu", checks=True)
    return kernel, Simulation(kernel.libsim)


def line_of(text: str) -> int:
    return next(number for number, line in enumerate(LINES, 1) if text in line)


class Run:
    """A call of a launcher with tensors, and its report. ``inspect`` may read each tensor's ``address``."""

    def __init__(self, launcher: str, *arguments: Any, inspect: Any = None, **settings: object) -> None:
        kernel, simulation = built()
        sim = simulation.sim
        defaults = {"workers": 1, "schedule": "forward", "trace": 0, "checks": 1, "max_findings": 1000}
        for key, value in {**defaults, **settings}.items():
            assert sim.sim_configure(key.encode(), str(value).encode()) == 0
        sim.sim_reset()
        prototype = next(p for p in kernel.launchers if p.name == launcher)
        library = ctypes.CDLL(str(kernel.library))
        values: list[Any] = []
        self.address: dict[str, int] = {}
        given = iter(arguments)
        for parameter in prototype.parameters:
            if parameter.kind == "stream":
                values.append(ctypes.c_void_p(None))
                continue
            argument = next(given)
            if isinstance(argument, tuple):
                array = np.zeros(argument, dtype=np.float32)
                shape = (ctypes.c_int64 * array.ndim)(*argument)
                address = sim.sim_tensor_alloc(parameter.name.encode(), b"float32", array.ndim, shape, array.nbytes, 0)
                if parameter.const:
                    sim.sim_tensor_write(address, array.ctypes.data, array.nbytes)
                    sim.sim_tensor_readonly(address)
                else:
                    sim.sim_expect_output(address)
                self.address[parameter.name] = address
                values.append(ctypes.c_void_p(address))
            else:
                values.append(ctypes.c_int(argument))
        pointers = (ctypes.c_void_p * len(values))(*(ctypes.addressof(v) for v in values))
        self.error = getattr(library, entry_point(launcher))(pointers)
        self.text = sim.sim_report().decode()
        self.report = Report.from_json(self.text, kernel.library, SOURCE)
        self.writers = {
            name: [self._writer(sim, start + 4 * i) for i in range(inspect or 0)]
            for name, start in self.address.items()
        }
        sim.sim_reset()

    @staticmethod
    def _writer(sim: ctypes.CDLL, address: int) -> list[int] | None:
        who = (ctypes.c_uint * 6)()
        return list(who) if sim.sim_writer(address, who) else None


def test_an_access_past_the_end_names_distance_memory_and_thread():
    run = Run("past_end", (2, 4, 5), (2, 4, 5), 8, 5)
    (finding,) = run.report.findings
    line = line_of("k[(row + 1)")
    assert message(finding) == (
        f"out-of-bounds access: 4-byte read, 0 bytes past the end of k[2, 4, 5] (float32) at findings.cu:{line}, "
        "block (7, 0, 0) thread (0, 0, 0)"
    )
    assert (finding.check, finding.kind, finding.count) == ("memcheck", "out_of_bounds", 5)
    assert (finding.block, finding.thread) == ([7, 0, 0], [0, 0, 0])
    assert finding.memory is not None and (finding.memory.name, finding.memory.space) == ("k", "global")
    assert finding.source_line == LINES[line - 1]


def test_a_line_of_the_kernel_file_is_read_without_listing_the_headers(monkeypatch):
    monkeypatch.setattr("grader.simulator.places._own_headers", None)
    (finding,) = Run("past_end", (2, 4, 5), (2, 4, 5), 8, 5).report.findings
    assert finding.source_line == LINES[finding.line - 1]


def test_the_caret_points_at_the_access():
    (finding,) = Run("past_end", (2, 4, 5), (2, 4, 5), 8, 5).report.findings
    access = LINES[finding.line - 1].index("k[(row")
    assert access < finding.column <= len(LINES[finding.line - 1])
    number, caret = text(finding).splitlines()[1:3]
    assert number.index("|") == caret.index("|")
    assert number[caret.index("^")] == LINES[finding.line - 1][finding.column - 1]


def test_the_whole_finding_is_readable():
    (finding,) = Run("past_end", (2, 4, 5), (2, 4, 5), 8, 5).report.findings
    rows = text(finding).splitlines()
    assert rows[0] == f"memcheck: {message(finding)}"
    assert LINES[finding.line - 1].strip() in rows[1]
    assert "seen 5 times" in rows[3]
    assert rows[4].startswith("  Why it matters: ") and rows[5].startswith("  Fix: ") and "guard" in rows[5]


def test_a_race_names_both_sides():
    (finding,) = Run("unordered", (64,), 64).report.findings
    write, read = line_of("tile[threadIdx.x] = 1"), line_of("tile[63 - threadIdx.x]")
    assert (finding.check, finding.line, finding.access) == ("racecheck", write, "write")
    assert finding.other is not None
    assert (finding.other.line, finding.other.access) == (read, "read")
    assert finding.other.source_line == LINES[read - 1]
    assert finding.other.thread != finding.thread
    assert "the shared array tile (256 bytes)" in message(finding)
    for row in (LINES[write - 1].strip(), LINES[read - 1].strip(), "__syncthreads()"):
        assert row in text(finding)


def test_a_race_hides_the_uninitialized_read_on_its_line():
    for schedule in ("forward", "reverse", "random:1"):
        findings = Run("unordered", (64,), 64, schedule=schedule).report.findings
        assert [finding.check for finding in findings] == ["racecheck"]


def test_reads_of_two_uninitialized_arrays_in_one_line_are_two_findings():
    findings = Run("two_unwritten", (64,)).report.findings
    assert [(f.kind, f.line, f.count) for f in findings] == [
        ("uninitialized_read", line_of("first[threadIdx.x] + second"), 64)
    ] * 2
    assert [name in message(f) for f, name in zip(findings, ("array first", "array second"))] == [True, True]


def test_unwritten_elements_are_counted_and_named():
    (finding,) = Run("checkered", (4, 6), 4, 6).report.findings
    assert finding.kind == "output_not_written"
    assert message(finding) == (
        "output not fully written: 12 of 24 elements of out[4, 6] (float32) were never written: [0, 1], [0, 3], [0, "
        "5], [1, 0], [1, 2], ..."
    )


def test_copies_of_an_unrolled_access_are_one_finding():
    (finding,) = Run("unrolled", (35,), (32,), 32).report.findings
    assert finding.count == 32 * 4 - 3 - 2 - 1
    assert finding.line == line_of("sum += k[count")


def test_the_number_of_findings_is_limited():
    run = Run("many_lines", (32,), 32, max_findings=2)
    assert len(run.report.findings) == 2
    assert run.report.dropped_findings == 32
    assert len(Run("many_lines", (32,), 32).report.findings) == 3


def test_the_writer_of_each_element_is_known():
    run = Run("writers", (4, 16), 4, 16, inspect=64)
    for i, who in enumerate(run.writers["out"]):
        row, column = divmod(i, 16)
        assert who == [column // 8, row // 2, 0, column % 8, row % 2, 0]


def test_the_same_run_gives_the_same_report():
    first = Run("unordered", (64,), 64).text
    assert all(Run("unordered", (64,), 64).text == first for _ in range(5))


@pytest.mark.parametrize("text", ["", "{}", '{"version": 1, "findings": []}'])
def test_empty_reports_have_no_findings_and_zero_counters(text):
    kernel, _ = built()
    report = Report.from_json(text, kernel.library)
    assert not report.findings and not report.lines
    assert report.totals["launches"] == report.totals["global_bytes"] == report.totals["bank_conflict_ways"] == 0


def test_findings_have_lines_without_the_source():
    run = Run("past_end", (2, 4, 5), (2, 4, 5), 8, 5)
    kernel, _ = built()
    (finding,) = Report.from_json(run.text, kernel.library).findings
    assert (finding.line, finding.source_line) == (line_of("k[(row + 1)"), "")


def test_names_are_escaped_in_json():
    run = Run("past_end", (2, 4, 5), (2, 4, 5), 8, 5)
    assert json.loads(run.text)["version"] == 1


def test_checks_can_be_switched_off():
    run = Run("past_end", (2, 4, 5), (2, 4, 5), 8, 5, checks=0)
    assert run.error == 0
    assert not [finding for finding in run.report.findings if finding.kind != "output_not_written"]


def test_a_race_with_many_readers_suggests_a_barrier() -> None:
    (race,) = Run("read_by_all", (64,)).report.findings
    assert race.kind == "within_block" and "Put __syncthreads()" in fix(race)


def test_an_atomic_operation_without_a_fence() -> None:
    (race,) = Run("no_fence", (4,), (1,), 4).report.findings
    assert race.kind == "between_blocks" and "use atomics" not in fix(race)
    assert f"The atomic operation at findings.cu:{line_of('atomicAdd(&finished')} does not order other accesses" in fix(
        race
    )


@pytest.mark.parametrize("launcher", ["queue", "queue_by_helper"])
def test_the_counter_of_a_queue_is_not_called_a_signal(launcher: str) -> None:
    (race,) = (found for found in Run(launcher, (1,), (1,)).report.findings if found.check == "racecheck")
    assert race.kind == "between_blocks" and fix(race).startswith("Blocks of one launch run in any order: use atomics")


def test_an_atomic_operation_in_a_function_is_named_where_the_kernel_calls_it() -> None:
    (race,) = Run("flag", (1,), (1,), (1,)).report.findings
    assert f"The atomic operation at findings.cu:{line_of('the call that a finding names')} does not" in fix(race)


def test_lines_have_the_numbers_that_line_directives_give_them(tmp_path: Path) -> None:
    kernel = tmp_path / "kernel.cu"
    kernel.write_text('first\nsecond\n#line 7\nseventh\neighth\n  # line 2 "other.cu"\nnew second\n')
    assert source_lines(str(kernel)) == ["first", "new second", "", "", "", "", "seventh", "eighth"]
    kernel.write_text("first\nsecond\n")
    assert source_lines(str(kernel)) == ["first", "second"]
