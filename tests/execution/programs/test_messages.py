"""Messages about programs: they give advice for a C program, not for an exercise of the course."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from grader.cli.app import run
from grader.verdict.findings import KINDS
from grader.verdict.findings.kind import render
from grader.verdict.wording.catalog import sample
from tests.execution.programs.running import KERNELS

FAULTY = KERNELS / "faulty.cu"
OF_THE_COURSE = re.compile(
    r"\btorch|\blauncher|\btensors?\b(?! (core|map|copy|copies|memory|tile))|\bexercise|\blesson|\bllmk"
    r"|\bcases\b|\bsubmission|grader (check|hint|watch|bench)|\bthe course|load_kernel",
    re.IGNORECASE,
)
ONLY_IN_EXERCISES = {
    *("write_to_const", "output_not_written", "leak", "default_stream", "not_its_memory", "not_its_stack"),
    *("not_its_function", "host_copies", "no_launch", "nothing_written", "nothing_read", "too_few_bytes"),
}
"""Findings about arguments of a launcher, about what a submission may do, or about outputs of a task."""


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("bounds", "out-of-bounds access: 4-byte write, 0 bytes past the end of memory from cudaMalloc (256 bytes)"),
        ("race", "race between warps of a block on element 32 (byte 128) of the shared array tile"),
        ("uninitialized", "read of uninitialized memory: 4-byte read of memory that was never written"),
        ("misaligned", "misaligned address: 16-byte write at byte 4 of memory from cudaMalloc (256 bytes)"),
        ("leak", "There are no findings in 1 launch. It did not free 528 B of device memory."),
        ("host", "host access to device memory: host code makes a 4-byte write of device memory"),
        ("streams", "race between streams on element 0 (byte 0) of memory from cudaMalloc (256 bytes)"),
        (
            "free",
            "cudaFree failed with CUDA error 1: the pointer was not allocated, or was freed already at faulty.cu:",
        ),
    ],
)
def test_faulty_programs_get_advice_for_c_programs(how: str, said: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["run", str(FAULTY), "--", how]) == (0 if how == "leak" else 1)
    shown = " ".join(capfd.readouterr().err.split())
    assert said in shown
    assert not OF_THE_COURSE.search(shown), shown


def test_advice_fits_a_program() -> None:
    assert KINDS.keys() >= ONLY_IN_EXERCISES
    for name in KINDS.keys() - ONLY_IN_EXERCISES:
        for phrase in (KINDS[name].why, KINDS[name].fix):
            text = render(phrase, sample(KINDS[name]))
            assert not OF_THE_COURSE.search(text), text


def test_errors_of_a_build_fit_a_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for text, said in (
        ('#include "other.h"\nint main() {}\n', "Name the folder of the header with -I."),
        ("void f() {}\n", "Pass the file that defines it as well."),
        ("int main() { return missing; }\n", "'missing' was not declared"),
    ):
        Path("program.cu").write_text(text)
        assert run(["run", "program.cu"]) == 2
        shown = " ".join(capfd.readouterr().err.split())
        assert said in shown and not OF_THE_COURSE.search(shown), shown
