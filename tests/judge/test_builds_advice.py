"""Errors of the front end have advice in every report."""

from __future__ import annotations

from pathlib import Path

from grader.course import find
from grader.judge import check
from grader.report.html import html_page
from grader.report.junit import junit_xml
from grader.report.terminal import as_text


def test_a_helper_without_device_says_what_to_write(tmp_path: Path) -> None:
    entry = find("day02_reductions/row_sum_debug")
    file = tmp_path / "row_sum_debug.cu"
    solution = entry.solution.read_text()
    file.write_text(solution.replace("__device__ float warp_sum", "float warp_sum"))
    assert file.read_text() != solution
    verdict = check(entry, file)
    builds = verdict.stage("builds")
    assert builds is not None and builds.status == "failed"
    for report in (as_text(verdict), html_page(verdict), junit_xml(verdict)):
        assert "Write __device__ before warp_sum" in " ".join(report.split())


def test_an_empty_file_is_called_empty(tmp_path: Path) -> None:
    entry = find("day02_reductions/row_sum_debug")
    file = tmp_path / "row_sum_debug.cu"
    file.write_text("\n")
    shown = " ".join(as_text(check(entry, file)).split())
    assert "row_sum_debug.cu is empty" in shown and "grader reset day02_reductions/row_sum_debug" in shown
    assert "launcher" not in shown


def test_the_advice_about_a_later_error_is_beside_it(tmp_path: Path) -> None:
    entry = find("day02_reductions/row_sum_debug")
    file = tmp_path / "row_sum_debug.cu"
    broken = "__device__ int first() { return nope; }\n__device__ int second() { print(2); return 0; }\n"
    file.write_text(entry.solution.read_text() + broken)
    builds = check(entry, file).stage("builds")
    assert builds is not None
    assert [bool(item.advice) for item in builds.diagnostics] == [False, True]
    assert "Write printf" in builds.diagnostics[1].advice
