"""What nvcc says of a file, in the verdict that shows details."""

from __future__ import annotations

from pathlib import Path

import pytest

from grader.course import find
from grader.judge import check
from grader.present.terminal import as_text
from grader.toolchain.compilers import find_nvcc

HOST_OPERATOR = """
struct Pair { int a; };
Pair operator+(Pair x, Pair y) { return {x.a + y.a}; }
__device__ int both(Pair x, Pair y) { return (x + y).a; }
"""


@pytest.mark.skipif(find_nvcc(required=False) is None, reason="there is no nvcc here")
def test_what_only_nvcc_refuses_is_said(tmp_path: Path) -> None:
    entry = find("day01_residual_add/strided_add")
    file = tmp_path / "strided_add.cu"
    file.write_text(entry.solution.read_text() + HOST_OPERATOR)
    verdict = check(entry, file, details=True)
    builds = verdict.stage("builds")
    assert builds is not None and builds.passed and not builds.resources
    text = " ".join(as_text(verdict, verbose=True).split())
    assert "nvcc does not compile this file" in text and "operator" in text
