"""Findings in complete programs: none if the program is correct, otherwise at the right line."""

from __future__ import annotations

from pathlib import Path

import pytest

from grader.execution.programs.execute import execute
from grader.verdict.wording.findings import message
from tests.execution.programs.running import KERNELS, built, findings_of, without_findings

CHECKS = KERNELS / "checks.cu"


@pytest.fixture(scope="module")
def checks() -> Path:
    return built(CHECKS)


def test_correct_programs_have_no_findings(checks: Path, capfd: pytest.CaptureFixture[str]) -> None:
    outcome = without_findings(checks)
    assert outcome.exit_code == 0 and outcome.leaked == 0
    assert capfd.readouterr().out == "3 7 127 4000 80007e02 a\n"


def test_copies_of_uninitialized_memory_and_masks_are_reported(checks: Path) -> None:
    shuffled, copied = sorted(findings_of(checks, "more"), key=lambda finding: finding.line)
    assert copied.kind == "uninitialized_copy" and "never written" in copied.source_line
    assert "128 bytes that were never written are copied to the host, the first at byte 128 of" in message(copied)
    assert shuffled.kind == "own_lane_not_in_mask" and shuffled.count == 16
    assert "0x0000ffff" in message(shuffled)  # the mask that each of the 16 threads passed, printed once


def test_a_device_variables_name_is_another_object_in_host_code(capfd: pytest.CaptureFixture[str]) -> None:
    file = CHECKS.with_name("host_names.cu")
    program = built(file)
    right, wrong = execute(program), execute(program, ["wrong"])
    assert right.report is not None and right.report.findings == [] and wrong.report is not None
    said = "10 1084227584 4 5 7\n"
    illegal = "an illegal memory access was encountered"
    assert (
        capfd.readouterr().out == 2 * said + f"copy: invalid argument\nfill: invalid argument\n0\nlaunch: {illegal}\n"
    )
    findings = sorted((finding.kind, finding.line) for finding in wrong.report.findings)
    lines = [number for number, text in enumerate(file.read_text().splitlines(), 1) if "// wrong" in text]
    kernel = next(number for number, text in enumerate(file.read_text().splitlines(), 1) if "*other = 1" in text)
    assert findings == [
        ("host_name", kernel),
        ("host_name", lines[2]),
        ("host_name", lines[3]),
        ("refused", lines[0]),
        ("refused", lines[1]),
    ]


def test_older_programs_run_as_on_a_gpu_of_their_time(capfd: pytest.CaptureFixture[str]) -> None:
    outcome = without_findings(built(CHECKS.with_name("older.cu")))
    assert outcome.exit_code == 0 and outcome.leaked == 0
    assert capfd.readouterr().out == "9 9 9 9 499\n7fff7fff 7f01017f 10 4 1 0 ffffffff\n0 2 0 -2048\n-32\n"
