"""Device variable templates: each instantiation can be copied by its symbol and has its own bounds."""

from __future__ import annotations

from pathlib import Path

import pytest

from grader.execution.programs.execute import execute
from grader.verdict.wording.findings import message
from tests.execution.programs.test_run import line_of

FILE = Path(__file__).parent / "kernels" / "variable_templates.cu"


def test_they_are_copied_to_and_from_by_name(program: Path, capfd: pytest.CaptureFixture[str]) -> None:
    outcome = execute(program)
    assert outcome.report is not None and outcome.report.findings == []
    assert outcome.exit_code == 0 and capfd.readouterr().out == "11 7 12\n11 7 24\n"


def test_each_has_its_bounds(program: Path) -> None:
    outcome = execute(program, ["one more"])
    assert outcome.report is not None
    [finding] = outcome.report.findings
    assert (finding.kind, finding.line) == ("out_of_bounds", line_of("// may read past the end", FILE))
    assert "0 bytes past the end of the __device__ variable table (24 bytes)" in message(finding)
