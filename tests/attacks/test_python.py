"""Attacks by Python files: no undeserved pass, nothing left behind, and a message that names what happened."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from grader.course.python_task import Case, PythonExercise, said
from grader.judge import check, python_file
from grader.report.terminal import as_text
from grader.verdict import Verdict
from grader.verdict.wording.results import as_json
from tests.attacks.conftest import HERE, LONG_SECONDS, SECRET, SHORT_SECONDS
from tests.attacks.reports import assert_clean, texts
from tests.seeds import SEED

FOLDER = HERE / "python"
ATTACKS = sorted(FOLDER.glob("*.py"))
SAYS = "# Says: "
STOPPED = f" {SHORT_SECONDS:g} s"
"""The part of an expected message that names the time limit. Only files with such a message get the short limit."""


class CounterModel:
    """The reference: the sum so far."""

    def __init__(self, start):
        self.total = start

    def judge(self, operation, outcome, views):
        """Return what is wrong after an operation."""
        self.total += operation.arguments[0]
        if outcome.raised:
            return f"it raises {said(outcome.raised)}"
        value = outcome.value["type"] if isinstance(outcome.value, dict) else outcome.value
        return "" if value == self.total else f"it returns {value}, not {self.total}"


def exercise(timeout: float) -> PythonExercise:
    """Return an exercise whose class adds numbers."""
    return PythonExercise(
        title="Counter",
        summary="Add numbers.",
        name="day00_tests/counter",
        reference=CounterModel,
        creates="Counter",
        methods=("add",),
        views=(),
        instance="counter",
        cases=[
            Case("two", start=10, operations="add(2); add(3)"),
            Case("drawn", start=0, operations=lambda chooser: f"add({chooser.randint(1, 9)}); add(4)"),
        ],
        scripts=20,
        timeout=timeout,
    )


def expected(text: str) -> str:
    """Return the message that a file must get, from its second line."""
    return text.splitlines()[1].removeprefix(SAYS)


Grade = Callable[[Path], Verdict]


@pytest.fixture
def graded(tier: str, places: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Grade:
    """Return a function that grades a Python file in a tier of the sandbox."""
    monkeypatch.setenv("GRADER_TEST_SECRET", "secret")
    solution = places["@SOLUTION@"].replace(
        "day01_residual_add/residual_add.cu", "day10_paged_attention/block_allocator.py"
    )

    def grade(file: Path) -> Verdict:
        text = file.read_text()
        timeout = SHORT_SECONDS if STOPPED in expected(text) else LONG_SECONDS
        monkeypatch.setattr(python_file, "LEAST_SECONDS", timeout)  # for slow_often: one script alone is not too slow
        for word, place in {**places, "@SOLUTION@": solution}.items():
            text = text.replace(word, place)
        whole = tmp_path / "counter.py"
        whole.write_text(text)
        verdict = check(exercise(timeout), whole, seed=SEED)
        assert verdict.isolation == tier
        return verdict

    return grade


def test_an_honest_file_passes(graded: Grade) -> None:
    verdict = graded(FOLDER / "honest" / "counter.py")
    assert verdict.passed and [stage.name for stage in verdict.stages] == ["builds", "correct"], as_text(verdict)


@pytest.mark.parametrize("file", ATTACKS, ids=lambda file: file.stem)
def test_attacks_fail_with_a_message(graded: Grade, places: dict[str, str], file: Path, tmp_path: Path) -> None:
    before = sorted(os.listdir(places["@FOLDER@"]))
    verdict = graded(file)
    assert not verdict.passed, as_text(verdict)
    assert expected(file.read_text()) in " ".join(as_text(verdict, width=400).split()), as_text(verdict, width=400)
    assert sorted(os.listdir(places["@FOLDER@"])) == before, "the attack left files behind"
    assert "\\u001b" not in as_json(verdict) and len(as_json(verdict)) < 50_000
    assert_clean(verdict, tmp_path, (SECRET, "class BlockAllocator"))
    assert max(map(len, texts(verdict, tmp_path).values())) < 200_000


def test_a_syntax_error_shows_its_line(graded: Grade, tmp_path: Path) -> None:
    file = tmp_path / "given.py"
    file.write_text("import math\n\n\nclass Counter\n    pass\n")
    verdict = graded(file)
    assert verdict.failed_stage.name == "builds" and "counter.py:4" in as_text(verdict)
    assert_clean(verdict, tmp_path)


def test_every_attack_says_what_must_be_shown() -> None:
    assert len(ATTACKS) >= 30
    for path in ATTACKS:
        first, second, *_ = path.read_text().splitlines()
        assert first.endswith('."""') and second.startswith(SAYS), path.name
