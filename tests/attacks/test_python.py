"""Attacks by Python files: no undeserved pass, nothing left behind, and a message that names what happened."""

from __future__ import annotations

import os
import textwrap
import tomllib
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

ATTACKS: dict[str, dict[str, str]] = tomllib.loads((HERE / "python_attacks.toml").read_text())
CLASS = '''

class Counter:
    """Adds numbers."""

    def __init__(self, start):
        self.total = start

    def add(self, number):
        """Return the sum so far."""
{add}
        self.total += number
        return self.total
'''
STOPPED = f" {SHORT_SECONDS:g} s"
"""The part of an expected message that names the time limit. Only attacks with such a message get the short limit."""


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


Grade = Callable[[str, float], Verdict]


@pytest.fixture
def graded(tier: str, places: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Grade:
    """Return a function that grades the text of a Python file in a tier of the sandbox, with a time limit."""
    monkeypatch.setenv("GRADER_TEST_SECRET", "secret")
    solution = places["@SOLUTION@"].replace(
        "day01_residual_add/residual_add.cu", "day10_paged_attention/block_allocator.py"
    )

    def grade(text: str, timeout: float) -> Verdict:
        monkeypatch.setattr(python_file, "LEAST_SECONDS", timeout)  # for slow_often: one script alone is not too slow
        for word, place in {**places, "@SOLUTION@": solution}.items():
            text = text.replace(word, place)
        whole = tmp_path / "counter.py"
        whole.write_text(text)
        verdict = check(exercise(timeout), whole, seed=SEED)
        assert verdict.isolation == tier
        return verdict

    return grade


HONEST = {"much of the library": (HERE / "controls/counter.py").read_text(), "no attack": CLASS.format(add="")}


@pytest.mark.parametrize("text", HONEST.values(), ids=list(HONEST))
def test_an_honest_file_passes(graded: Grade, text: str) -> None:
    verdict = graded(text, LONG_SECONDS)
    assert verdict.passed and [stage.name for stage in verdict.stages] == ["builds", "correct"], as_text(verdict)


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=list(ATTACKS))
def test_attacks_fail_with_a_message(
    graded: Grade, places: dict[str, str], attack: dict[str, str], tmp_path: Path
) -> None:
    text = attack.get("file") or attack.get("head", "") + CLASS.format(
        add=textwrap.indent(attack.get("add", ""), " " * 8)
    )
    before = sorted(os.listdir(places["@FOLDER@"]))
    verdict = graded(text, SHORT_SECONDS if STOPPED in attack["says"] else LONG_SECONDS)
    assert not verdict.passed, as_text(verdict)
    assert attack["says"] in " ".join(as_text(verdict, width=400).split()), as_text(verdict, width=400)
    assert sorted(os.listdir(places["@FOLDER@"])) == before, "the attack left files behind"
    assert "\\u001b" not in as_json(verdict) and len(as_json(verdict)) < 50_000
    assert_clean(verdict, tmp_path, (SECRET, "class BlockAllocator"))
    assert max(map(len, texts(verdict, tmp_path).values())) < 200_000


def test_a_syntax_error_shows_its_line(graded: Grade, tmp_path: Path) -> None:
    verdict = graded("import math\n\n\nclass Counter\n    pass\n", LONG_SECONDS)
    assert verdict.failed_stage.name == "builds" and "counter.py:4" in as_text(verdict)
    assert_clean(verdict, tmp_path)
