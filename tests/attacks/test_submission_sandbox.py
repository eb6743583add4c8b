"""A submission is stopped when it accesses memory or calls functions of the simulator, or device memory from host code.

Without the sandbox each of these kernels would pass, because none of their writes changes a result.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from grader.frontend.toolchain.compilers import find_cxx
from grader.report.terminal import as_text
from grader.verdict.wording import cases
from tests.attacks.conftest import HERE, Judge, in_one_jail

FOLDER = HERE / "submission_sandbox"
RESULT_UNCHANGED = (
    "constants_too_large",
    "host_copies",
    "out_of_bounds",
    "uninitialized_read",
    "within_block",
    "write_to_constant",
)
"""Findings that do not change the outputs. They fail the stage *safe* instead of *correct*."""
FILES = [path for path in sorted(FOLDER.glob("*.cu")) if path.stem != "prelude"]


@in_one_jail
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_accesses_to_the_simulator_are_stopped(judged: Judge, path: Path, tmp_path: Path) -> None:
    if path.stem == "offset_of_a_local" and find_cxx().family == "clang":
        pytest.skip("clang++ removes stores that are out of bounds at compile time")
    text = path.read_text()
    (expected,) = re.findall(r"^// Expected (?:finding|message): (\w+)\.$", text, re.MULTILINE)
    file = tmp_path / "submission_sandbox.cu"
    file.write_text(f"// {path.stem}\n{(FOLDER / 'prelude.cu').read_text()}{text}")
    verdict = judged(file)
    assert verdict.stage("builds").status == "passed", as_text(verdict)
    assert not verdict.passed, as_text(verdict)
    if expected == "stopped":
        assert "stopped: " in as_text(verdict)
        return
    kinds = {finding.kind for stage in verdict.stages for finding in stage.findings}
    assert expected in kinds, as_text(verdict)
    failed = [case for case in verdict.stage("correct").cases if case.status == "failed"]
    assert failed or expected in RESULT_UNCHANGED
    assert all(cases.in_short(case) for case in failed)
