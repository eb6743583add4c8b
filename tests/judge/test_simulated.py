"""An invalid report is blamed on the kernel if it forged the report, otherwise on the grader."""

from __future__ import annotations

from pathlib import Path

import pytest

from grader.execution.build.build import BuiltKernel, compile_kernel
from grader.judge.cases import Run, plan
from grader.judge.simulated import attach_findings
from grader.simulator.report import Report
from grader.verdict import PASSED, OutputResult
from grader.verdict.wording.findings import message
from tests.judge.test_check import HEAD, KERNEL, LAUNCHER, RIGHT, exercise


@pytest.fixture
def built(tmp_path: Path) -> BuiltKernel:
    file = tmp_path / "twice.cu"
    file.write_text(HEAD + KERNEL.replace("BODY", RIGHT) + LAUNCHER)
    return compile_kernel(file, "cpu", checks=True)


def passed(report: str) -> Run:
    """Return a run with a correct output, and its report."""
    task = exercise()
    made = plan(task, task.runs()[2:3], seed=1)[0]
    made.report, made.result.status = report, PASSED
    made.result.outputs = [OutputResult("out", "f32", [100], True, 100)]
    return made


@pytest.mark.parametrize("report", ["", "{", "[]", '{"version": 1' + "0" * 5000 + "}", '{"findings": [{}]}', "\ufffd"])
def test_a_forged_report_fails_the_kernel(built: BuiltKernel, report: str) -> None:
    made = passed(report)
    attach_findings(made, built.library, built.file)
    (finding,) = made.result.findings
    assert finding.kind == "report_missing" and "missing or cannot be read" in message(finding)


def fails(self: object) -> Report:
    raise IndexError("mine")


def test_an_error_of_the_grader_does_not_fail_the_kernel(built: BuiltKernel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("grader.simulator.finding_reader.FindingReader.read", fails)
    with pytest.raises(IndexError):
        attach_findings(passed("{}"), built.library, built.file)
