"""The line that shows the progress of a check on a terminal, and the device of ``grader watch``."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from grader.cli import watch_loop
from grader.cli.check import working
from grader.course import Course
from grader.judge.options import CheckEvent


class Terminal:
    """A console that keeps the texts of its status line."""

    is_terminal, encoding = True, "utf-8"

    def __init__(self) -> None:
        self.shown: list[str] = []

    @contextlib.contextmanager
    def status(self, text: str, spinner: str) -> Iterator[Any]:
        self.shown.append(text)
        yield SimpleNamespace(update=self.shown.append)


def test_the_line_names_finished_stages_and_the_current_step() -> None:
    terminal = Terminal()
    with working(terminal, "softmax") as show:  # type: ignore[arg-type]
        assert show is not None and terminal.shown == ["grading softmax"], "a line before the first event"
        for event in (
            CheckEvent("builds", "started"),
            CheckEvent("builds", "finished", status="passed"),
            CheckEvent("correct", "started", total=9),
            CheckEvent("correct", "case", 3, 9, "one row", "passed"),
            CheckEvent("correct", "finished", status="passed"),
            CheckEvent("fast", "started"),
            CheckEvent("fast", "step", case="large (f32)"),
        ):
            show(event)
    assert [text.removeprefix("grading softmax: ") for text in terminal.shown[1:]] == [
        "builds",
        "builds passed",
        "builds passed, correct 0 of 9",
        "builds passed, correct 3 of 9",
        "builds passed, correct passed",
        "builds passed, correct passed, fast",
        "builds passed, correct passed, fast: large (f32)",
    ]


def test_nothing_is_shown_in_a_file() -> None:
    terminal = Terminal()
    terminal.is_terminal = False
    with working(terminal, "softmax") as show:  # type: ignore[arg-type]
        assert show is None and not terminal.shown


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_watch_grades_on_the_chosen_device(monkeypatch: pytest.MonkeyPatch, device: str) -> None:
    """Measure times at each save, but keep them for ``grader check``."""
    used: list[Any] = []
    given: list[Any] = []

    def loop(course: Course, start: Any, console: Any, grade: Any) -> Any:
        given.append(grade)
        return SimpleNamespace(current=None, print_finished=lambda: None)

    monkeypatch.setattr(watch_loop, "WatchLoop", loop)
    monkeypatch.setattr(watch_loop, "grade", lambda entry, file, console, options: used.append(options))
    assert watch_loop.watch(Course(), None, device) == 0
    given[0]("an exercise")
    assert (used[0].device, used[0].times) == (device, "renew")
