"""Tests of host threads that synchronize with streams: after which calls the work of a stream counts as finished."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.execution.programs.running import KERNELS, findings_of, line_of, without_findings

FILE = KERNELS / "host_threads.cu"
LEARNS = ["child", "grandchild", "join", "launch", "condition", "shared mutex", "atomic", "volatile", "semaphore"]
LEARNS += ["promise", "barrier"]
SUM = sum(range(64)) + 64


@pytest.mark.parametrize("how", LEARNS)
def test_a_thread_synchronizes_with_a_host_function_in_a_stream(
    program: Path, how: str, capfd: pytest.CaptureFixture[str]
) -> None:
    outcome = without_findings(program, how)
    again = sum(range(64)) if how == "launch" else 0
    assert outcome.exit_code == 0 and capfd.readouterr().out == f"{SUM + again}\n"


@pytest.mark.parametrize("how", ["nothing", "another thread", "another mutex", "another order"])
def test_a_thread_without_synchronization_races(program: Path, how: str) -> None:
    findings = findings_of(program, how)
    [finding] = findings
    assert finding.kind == "with_host"
    assert {line for _, line in finding.places} == {
        line_of("// the read", FILE),
        line_of("__global__ void increment", FILE),
    }


def test_a_launch_by_a_thread_without_synchronization_races(program: Path) -> None:
    findings = findings_of(program, "another launch")
    assert {finding.kind for finding in findings} == {"between_streams"}
