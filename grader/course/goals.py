"""``exercises/goals.toml``: the speed that the course's solutions should reach on an H200.

Each ``[[goal]]`` is a limit on one figure of an exercise's recorded times, or of another record beside a lesson.
``grader.judge.timing.goals`` compares the goals with the records.
"""

from __future__ import annotations

import difflib
import fnmatch
from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta, Struct

from grader.course.catalog import Course
from grader.course.manifest import Text, read_record
from grader.setup.errors import GraderError

FILE = "exercises/goals.toml"

Yardstick = Literal["torch", "copy", "roofline", "microseconds", "tflops", "record"]
Positive = Annotated[float, Meta(gt=0)]

UNITS = {
    "torch": "{}x torch",
    "copy": "{} of a copy",
    "roofline": "{} of the roofline",
    "microseconds": "{} us",
    "tflops": "{} TFLOP/s",
}
"""A format string for the number of each yardstick."""


class Goal(Struct, frozen=True, forbid_unknown_fields=True):
    """One ``[[goal]]`` table of goals.toml."""

    exercise: Text
    """The full name of an exercise. A goal with a ``record`` may name a day instead."""
    yardstick: Yardstick
    """The figure: *torch* is torch's time divided by the kernel's, *copy* the share of a copy's speed.

    *record* is a figure of the file ``record``.
    """
    at_least: Positive | None = None
    at_most: Positive | None = None
    sizes: tuple[Text, ...] = ()
    """Shell patterns for the names of the sizes that the goal applies to; empty: all."""
    dtypes: tuple[Text, ...] = ()
    """The dtypes that the goal applies to; empty: all."""
    why: str = ""
    """The reason why the recorded figures miss the goal; empty if they meet it."""
    not_recorded: str = ""
    """The reason why no figure is recorded; empty if there is one."""
    record: str = ""
    """For the yardstick *record*: a JSON file, as a path from the folder ``lessons``."""
    figure: str = ""
    """The path of the figure in that file: keys separated by slashes, with shell patterns."""
    divided_by: str = ""
    """The path of a second figure, by which the first is divided."""
    unit: str = ""
    """A format string for the number from the record, such as ``{}x torch.compile``."""

    @property
    def day(self) -> str:
        """The folder of the goal's day."""
        return self.exercise.partition("/")[0]

    @property
    def name(self) -> str:
        """The exercise's name without the day; the day's name if the goal is for a day."""
        return self.exercise.rpartition("/")[2]

    @property
    def reason(self) -> str:
        """``why`` as one line."""
        return " ".join(self.why.split())

    @property
    def title(self) -> str:
        """The exercise's name, with the sizes and dtypes if the goal names some."""
        named = [*self.sizes, *self.dtypes]
        return f"{self.name} ({'; '.join(named)})" if named else self.name

    @property
    def limit(self) -> str:
        """The goal as text: ``at least 0.92 of a copy``."""
        return f"at least {self.show(self.at_least)}" if self.at_least else f"at most {self.show(self.at_most or 0)}"

    def show(self, value: float) -> str:
        """Return a limit as text, with its unit."""
        whole = value >= 100 or self.yardstick == "microseconds"
        return self.in_unit(f"{value:,.0f}" if whole else f"{value:.2f}")

    def in_unit(self, number: str) -> str:
        """Return a formatted number with the unit of the yardstick."""
        return (self.unit or UNITS[self.yardstick]).format(number)

    def met_by(self, value: float) -> bool:
        """Return whether a figure meets the goal."""
        return value >= self.at_least if self.at_least is not None else value <= (self.at_most or 0)

    def applies_to(self, size: str, dtype: str) -> bool:
        """Return whether the goal is for this size and dtype."""
        named = not self.sizes or any(fnmatch.fnmatchcase(size, pattern) for pattern in self.sizes)
        return named and (not self.dtypes or dtype in self.dtypes)


class _File(Struct, frozen=True, forbid_unknown_fields=True):
    goal: tuple[Goal, ...] = ()


def read_goals(root: Path) -> tuple[Goal, ...]:
    """Return the goals of goals.toml, in its order; none if there is no such file.

    Goals of a day that the course does not have are left out, so that a teacher can remove days. Raise GraderError for
    a goal that contradicts itself, or that names an exercise that its day does not have.
    """
    path = root / FILE
    if not path.is_file():
        return ()
    goals = read_record(path, _File, f"The keys of a goal are {', '.join(Goal.__struct_fields__)}.").goal
    course = Course(root)
    days = {day.folder for day in course.days}
    exercises = [entry.name for entry in [*course.exercises, *course.drafts]]
    kept = [(number, goal) for number, goal in enumerate(goals, 1) if goal.exercise.partition("/")[0] in days]
    for number, goal in kept:
        known = exercises + ([day.folder for day in course.days] if goal.yardstick == "record" else [])
        if problem := _problem(goal, known):
            raise GraderError(f"{path}: goal {number}, of {goal.exercise}: {problem}")
    return tuple(goal for _, goal in kept)


def _problem(goal: Goal, known: list[str]) -> str:
    """Return the error of a goal; empty if there is none."""
    if goal.exercise not in known:
        close = difflib.get_close_matches(goal.exercise, known, n=1)
        return "there is no such exercise" + (f"; did you mean {close[0]}?" if close else "")
    if (goal.at_least is None) == (goal.at_most is None):
        return "give either at_least or at_most"
    if (goal.yardstick == "record") != bool(goal.record and goal.figure and goal.unit):
        return "the yardstick record needs record, figure and unit, and no other yardstick may have them"
    if goal.unit and "{}" not in goal.unit:
        return "unit needs {} in place of the number"
    if goal.why and goal.not_recorded:
        return "give only one of why (the reason for a missed goal) and not_recorded (the reason for a missing figure)"
    return ""
