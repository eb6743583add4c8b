"""Bars: limits on counters."""

from __future__ import annotations

import math

import pytest

from grader.course import Course
from grader.course.task import Bar
from grader.judge.efficient import evaluate_bar
from grader.setup.errors import GraderError
from grader.verdict.wording.bars import UNITS, text

COUNTED = {"global_bytes": 3000.0, "minimum": 1000.0, "launches": 1, "ideal": 0, "sectors": 0, "nan": math.nan}


@pytest.mark.parametrize(
    ("bar", "value", "passed"),
    [
        (Bar("global_bytes / minimum", at_most=3.0), 3.0, True),
        (Bar("global_bytes / minimum", at_most=2.9), 3.0, False),
        (Bar("launches", at_most=1), 1.0, True),
        (Bar("max(launches, 2) * 2", at_least=5), 4.0, False),
        (Bar("global_bytes", at_least=1, at_most=5000), 3000.0, True),
        (Bar("sectors / ideal", at_most=1.0), math.inf, False),
        (Bar("sectors / ideal", at_least=1.0), math.inf, True),
        (Bar("nan", at_least=1.0), math.nan, False),
        *((Bar(str(value), at_most=10.0, at_least=5.0), value, True) for value in (10 * (1 + 1e-10), 5 * (1 - 1e-10))),
        *((Bar(str(value), at_most=10.0, at_least=5.0), value, False) for value in (10.1, 4.9)),
    ],
)
def test_bars(bar: Bar, value: float, passed: bool) -> None:
    result = evaluate_bar(bar, COUNTED)
    assert result.value == pytest.approx(value, rel=1e-12, nan_ok=True) and result.passed is passed


def test_a_result_has_the_values_that_the_bar_uses() -> None:
    result = evaluate_bar(Bar("launches", at_most=10.0, at_least=5.0, look="there"), COUNTED, "case", "f16")
    assert result.values == {"launches": 1.0}
    assert (result.case, result.dtype, result.look, result.at_most, result.at_least) == ("case", "f16", "there", 10, 5)


def test_messages_of_bars() -> None:
    result = evaluate_bar(Bar("global_bytes / minimum", at_most=1.2, look="read each row once"), COUNTED, dtype="f16")
    assert text(result).splitlines() == [
        "global_bytes / minimum = 3 in f16, at most 1.2 is allowed (global_bytes 3,000, minimum 1,000)",
        "  unit: bytes of global memory moved, divided by the bytes that must move",
        "  look at: read each row once",
    ]
    met = evaluate_bar(Bar("global_bytes / minimum", at_most=3, look="read each row once"), COUNTED)
    assert len(text(met).splitlines()) == 1
    assert "counts" not in text(evaluate_bar(Bar("launches", at_most=0), COUNTED))


def test_every_bar_of_an_exercise_has_a_unit() -> None:
    expressions = {bar.expression for entry in Course().exercises for bar in entry.load().bars}
    assert set(UNITS) <= expressions
    divided = {expression for expression in expressions if "shared_wavefronts" in expression}
    assert divided <= set(UNITS), "UNITS must explain the unit of each bar that divides wavefronts"


@pytest.mark.parametrize(
    ("expression", "says"),
    [
        ("no_such / 2 + another", "another, no_such, which is not counted"),
        ("1 +", "is not an expression"),
        ("launches.__class__", "has no value"),
    ],
)
def test_invalid_bars(expression: str, says: str) -> None:
    with pytest.raises(GraderError, match=says):
        evaluate_bar(Bar(expression, at_most=1), COUNTED)
