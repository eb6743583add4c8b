"""Builds the programs of the tests, runs them, and reads their findings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from grader.execution.programs.build import Options, build_program, compile_unit
from grader.execution.programs.execute import Outcome, execute
from grader.execution.programs.files import unit
from grader.setup.errors import GraderError
from grader.verdict import Finding

KERNELS = Path(__file__).parent / "kernels"


def line_of(text: str, file: Path) -> int:
    """Return the number of the first line that contains a text."""
    return next(number for number, line in enumerate(file.read_text().splitlines(), 1) if text in line)


def built(file: Path, checks: bool = True) -> Path:
    """Return the program that is built from one file."""
    return build_program([unit(file)], Options(checks=checks))


def findings_of(program: Path, *arguments: str, **how: Any) -> list[Finding]:
    """Run a program, and return its findings."""
    report = execute(program, arguments, **how).report
    assert report is not None
    return report.findings


def without_findings(program: Path, *arguments: str, **how: Any) -> Outcome:
    """Run a program that must have no findings, and return its outcome."""
    outcome = execute(program, arguments, **how)
    assert outcome.report is not None and outcome.report.findings == []
    return outcome


def refusal(code: str, folder: Path, std: str = "c++17") -> GraderError:
    """Return the error of a file ``one.cu`` that does not compile."""
    file = folder / "one.cu"
    file.write_text(code)
    with pytest.raises(GraderError) as caught:
        compile_unit(unit(file), Options(std))
    return caught.value
