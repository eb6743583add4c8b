"""Device variable templates: each instantiation can be copied by its symbol and has its own bounds."""

from __future__ import annotations

from pathlib import Path

import pytest

from grader.verdict.wording.findings import message
from tests.execution.programs.running import KERNELS, findings_of, line_of, without_findings

FILE = KERNELS / "variable_templates.cu"


def test_they_are_copied_to_and_from_by_name(program: Path, capfd: pytest.CaptureFixture[str]) -> None:
    outcome = without_findings(program)
    assert outcome.exit_code == 0 and capfd.readouterr().out == "11 7 12\n11 7 24\n"


def test_each_has_its_bounds(program: Path) -> None:
    [finding] = findings_of(program, "one more")
    assert (finding.kind, finding.line) == ("out_of_bounds", line_of("// may read past the end", FILE))
    assert "0 bytes past the end of the __device__ variable table (24 bytes)" in message(finding)
