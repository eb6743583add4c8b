"""Inputs are drawn while the kernel compiles. The kernel gets exactly these inputs, and the check frees them."""

from __future__ import annotations

import os
from contextlib import ExitStack
from typing import Any

import pytest

from grader.execution.runner.answers import Done
from grader.judge import cases
from grader.judge.cases import Run, draw_ahead, plan, run_case
from grader.setup.errors import GraderError
from tests.judge.test_cases import FakeChild
from tests.judge.test_stages import task


def runs_of(exercise: Any) -> list[Run]:
    return plan(exercise, exercise.runs() * 3, seed=1)


def test_inputs_are_drawn_until_the_build_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    exercise, asked = task(), iter([False, False, True])
    runs = runs_of(exercise)
    before = len(os.listdir("/proc/self/fd"))
    with ExitStack() as held:
        draw_ahead(exercise, runs, lambda: next(asked), held)
        assert [run.drawn is not None for run in runs] == [True, True, *(False for _ in runs[2:])]
        assert len(os.listdir("/proc/self/fd")) == before + 6
    assert len(os.listdir("/proc/self/fd")) == before
    monkeypatch.setattr(cases, "MOST_AHEAD", 1)
    with ExitStack() as held:
        draw_ahead(exercise, (again := runs_of(exercise)), lambda: False, held)
        assert [run.drawn is not None for run in again[:2]] == [True, False]


def test_a_case_runs_on_the_inputs_drawn_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    exercise = task()
    ahead, later = runs_of(exercise)[0], runs_of(exercise)[0]
    child = FakeChild(Done(0, ()))
    child.right = 2 * exercise.call(ahead.case, ahead.dtype, ahead.seed).tensors["x"]  # type: ignore[attr-defined]
    run_case(exercise, later, child)  # type: ignore[arg-type]
    with ExitStack() as held:
        draw_ahead(exercise, [ahead], lambda: False, held)
        monkeypatch.setattr(exercise, "call", None)
        monkeypatch.setattr(exercise, "reference", None)
        run_case(exercise, ahead, child)  # type: ignore[arg-type]
    ahead.result.seconds = later.result.seconds
    assert ahead.result == later.result and ahead.result.passed and ahead.drawn is None
    assert ahead.minimum_bytes == later.minimum_bytes > 0 and child.asked[0] == child.asked[1]


def test_a_failing_reference_is_reported_when_its_case_runs() -> None:
    exercise = task(reference=lambda x: 1 / 0)
    runs = runs_of(exercise)
    with ExitStack() as held:
        draw_ahead(exercise, runs, lambda: False, held)
    assert all(run.drawn is None for run in runs)
    child = FakeChild(Done(0, ()))
    child.right = exercise.call(runs[0].case, runs[0].dtype, runs[0].seed).tensors["x"]  # type: ignore[attr-defined]
    with pytest.raises(GraderError, match="ZeroDivisionError"):
        run_case(exercise, runs[0], child)  # type: ignore[arg-type]
