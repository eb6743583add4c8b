"""Programs that allocate more memory than the simulated device has behave as on a GPU, or stop with a clear error."""

from __future__ import annotations

from pathlib import Path

import pytest

from grader.execution.programs.execute import execute
from grader.execution.programs.results import ending
from grader.verdict.findings.launches import RefusedCall
from tests.execution.programs.running import KERNELS, line_of, without_findings

FILE = KERNELS / "large_memory.cu"


@pytest.mark.parametrize("how", ["managed", "bytes", "pinned"])
def test_host_memory_may_exceed_the_device_and_uses_none_of_it(
    program: Path, how: str, capfd: pytest.CaptureFixture[str]
) -> None:
    outcome = without_findings(program, how)
    assert outcome.exit_code == 0 and capfd.readouterr().out == "2 1\n"


def test_an_allocation_that_is_too_large_is_refused_without_a_finding(program: Path) -> None:
    outcome = without_findings(program, "too much")
    assert outcome.exit_code == 2
    asks = line_of("more than any device has", FILE)
    assert ending(outcome).startswith(
        f"The program was stopped at {FILE.name}:{asks}: cudaMallocManaged requests more than the "
    )


def test_a_program_may_query_the_memory_size(program: Path, capfd: pytest.CaptureFixture[str]) -> None:
    outcome = without_findings(program, "probe")
    assert outcome.exit_code == 0 and capfd.readouterr().out == "2 0\n"
    assert "there is no room for" in ending(outcome)
    assert f"at {FILE.name}:{line_of('handles the error', FILE)}." in ending(outcome)


@pytest.mark.parametrize(
    ("how", "line", "other"),
    [("ignore", "// ignores the error", "null_pointer"), ("set", "// also ignores the error", "refused")],
)
def test_an_ignored_allocation_error_is_reported_with_its_consequence(
    program: Path, how: str, line: str, other: str
) -> None:
    outcome = execute(program, [how])
    assert outcome.report is not None and outcome.exit_code == 1
    first, second, *_ = outcome.report.findings
    assert isinstance(first.payload, RefusedCall)
    assert (first.kind, first.payload.error, first.line) == ("refused", 2, line_of(line, FILE))
    assert second.kind == other
