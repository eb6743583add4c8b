"""Tests that CUB's algorithms over device memory are correct, and that an uninitialized input is reported."""

from __future__ import annotations

import pytest

from tests.execution.programs.running import KERNELS, built, findings_of, without_findings

EXPECTED = """\
sum 12.5
max 7
min -3
argmax 2 7
argmin 4 -3
argmax 2 7
inclusive 2.5 1.5 8.5 8.5 5.5 12.5
exclusive 0 2.5 1.5 8.5 8.5 5.5
sorted -3 -1 0 2.5 7 7
descending 10 25 0 15 5 20
low bits 0 25 10 20 5 15
"""


def test_results_are_those_of_cub_and_an_unwritten_input_is_found(capfd: pytest.CaptureFixture[str]) -> None:
    program = built(KERNELS / "cub_device.cu")
    outcome = without_findings(program)
    assert capfd.readouterr().out == EXPECTED
    assert outcome.leaked == 0
    findings = findings_of(program, "unwritten")
    assert [finding.kind for finding in findings] == ["uninitialized_read"]
