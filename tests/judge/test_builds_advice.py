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
