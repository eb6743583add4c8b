"""Tests of host threads that synchronize with streams: after which calls the work of a stream counts as finished."""

from __future__ import annotations

from pathlib import Path

import pytest

from grader.execution.programs.execute import execute
from tests.execution.programs.test_run import line_of

FILE = Path(__file__).parent / "kernels" / "host_threads.cu"
LEARNS = ["child", "grandchild", "join", "launch", "condition", "shared mutex", "atomic", "volatile", "semaphore"]
LEARNS += ["promise", "barrier"]
SUM = sum(range(64)) + 64


@pytest.mark.parametrize("how", LEARNS)
def test_a_thread_synchronizes_with_a_host_function_in_a_stream(
    program: Path, how: str, capfd: pytest.CaptureFixture[str]
) -> None:
    outcome = execute(program, [how])
    assert outcome.report is not None and outcome.report.findings == []
    again = sum(range(64)) if how == "launch" else 0
    assert outcome.exit_code == 0 and capfd.readouterr().out == f"{SUM + again}\n"


@pytest.mark.parametrize("how", ["nothing", "another thread", "another mutex", "another order"])
def test_a_thread_without_synchronization_races(program: Path, how: str) -> None:
    report = execute(program, [how]).report
    assert report is not None
    [finding] = report.findings
    assert finding.kind == "with_host"
    assert {line for _, line in finding.places} == {
        line_of("// the read", FILE),
        line_of("__global__ void increment", FILE),
    }


def test_a_launch_by_a_thread_without_synchronization_races(program: Path) -> None:
    report = execute(program, ["another launch"]).report
    assert report is not None
    assert {finding.kind for finding in report.findings} == {"between_streams"}
