"""Device heap (malloc, free, new, delete in kernels): correct use behaves like on a GPU, and misuse is reported."""

from __future__ import annotations

from pathlib import Path

import pytest

from grader.execution.programs.results import ending
from grader.verdict.wording.findings import message
from tests.execution.programs.running import KERNELS, built, findings_of, line_of, without_findings

FILE = KERNELS / "device_heap.cu"


@pytest.mark.parametrize("checks", [True, False])
def test_new_delete_malloc_and_free(checks: bool, capfd: pytest.CaptureFixture[str]) -> None:
    outcome = without_findings(built(FILE, checks=checks), "right", checks=checks)
    # The program prints the number of destructor calls (64), the sum of 0, 1, ... 63 plus 1 + 7 + 1 for each of the
    # 64 threads, and the sum of the array elements.
    assert outcome.exit_code == 0 and capfd.readouterr().out == f"64 {63 * 32 + 64 * 9} 192\n"
    assert outcome.leaked == 0


@pytest.mark.parametrize(("how", "null"), [("full", 1), ("larger", 0)])
def test_a_full_heap_gives_null_and_its_size_can_be_set(
    program: Path, how: str, null: int, capfd: pytest.CaptureFixture[str]
) -> None:
    without_findings(program, how)
    assert capfd.readouterr().out == f"{null + 1} {null} 0\n"  # `+ 1`: one object was destroyed


@pytest.mark.parametrize(
    ("how", "kind", "line", "says"),
    [
        ("past", "out_of_bounds", "// one past the end", "0 bytes past the end of memory from the device's heap (16 "
                                                         "bytes)"),
        ("after", "use_after_free", "// use after delete", "of freed memory"),
        ("twice", "double_free", "// double free", "double free"),
        ("other", "bad_free", "// delete of memory from cudaMalloc", "was not returned by device malloc or new"),
        ("garbage", "uninitialized_read", "// uninitialized", "never written"),
    ],
)  # fmt: skip
def test_misuse_is_reported(program: Path, how: str, kind: str, line: str, says: str) -> None:
    [finding] = findings_of(program, how)
    assert (finding.kind, finding.line) == (kind, line_of(line, FILE))
    assert says in message(finding)


def test_leaks_are_reported(program: Path) -> None:
    outcome = without_findings(program, "leak")
    assert outcome.exit_code == 0 and outcome.leaked == 64 * 24
    assert "It did not free" in ending(outcome)
