"""Compares the goals of ``exercises/goals.toml`` with the recorded times, and derives time limits from them.

A goal that the record meets becomes a limit of the stage *fast* (``with_time_bars``). A goal that it misses stays a
goal: the course's own solution would fail such a limit.
"""

from __future__ import annotations

import dataclasses
import fnmatch
import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from grader.course import Entry
from grader.course.goals import Goal, read_goals
from grader.course.task import Exercise, TimeBar
from grader.judge.timing.recordings import RECORDS, recorded_day
from grader.setup.errors import GraderError
from grader.verdict import Timing

SAME_GPU = 0.95
"""A limit is the goal times this factor, because the ratios of two runs on one GPU differ by a few percent."""
OTHER_GPU = 0.75
"""The share of the roofline required on another GPU is lower by this factor: kernels are tuned for an H200."""


@dataclass(frozen=True)
class Row:
    """A recorded figure: one size and dtype."""

    size: str
    dtype: str
    value: float
    met: bool
    timing: Timing | None = None
    """The recorded time; None if the figure is of another record."""

    @property
    def name(self) -> str:
        """The size and the dtype."""
        return ", ".join(part for part in (self.size, self.dtype) if part)


@dataclass(frozen=True)
class Reached:
    """A goal with its recorded figures."""

    goal: Goal
    rows: tuple[Row, ...] = ()
    gpu: str = ""
    date: str = ""
    command: str = ""
    """The command that measured the figures."""

    @property
    def missed(self) -> list[Row]:
        """The rows that miss the goal."""
        return [row for row in self.rows if not row.met]

    @property
    def status(self) -> str:
        """``met``, ``not met``, ``met in 2 of 3`` or ``not recorded``."""
        if not self.rows:
            return "not recorded"
        met = len(self.rows) - len(self.missed)
        return "met" if not self.missed else f"met in {met} of {len(self.rows)}" if met else "not met"

    @property
    def range(self) -> str:
        """The smallest and the largest recorded figure, with the unit; empty if there is none."""
        if not self.rows:
            return ""
        values = [row.value for row in self.rows]
        shown = list(dict.fromkeys(_number(value, self.goal) for value in (min(values), max(values))))
        return self.goal.in_unit(" to ".join(shown))

    @property
    def misses(self) -> str:
        """The rows that miss the goal with their figures, as text."""
        return "; ".join(f"{row.name} ({_number(row.value, self.goal)})" for row in self.missed)

    @property
    def explained(self) -> str:
        """The rows that miss the goal and why, or why no figure is recorded; empty if the goal is met."""
        if not self.rows:
            return f"Not recorded: {self.goal.not_recorded}." if self.goal.not_recorded else ""
        return f"Not met: {self.misses}. {self.goal.reason}".strip() if self.missed else ""


def reached(root: Path, day: str = "", folder: Path | None = None) -> list[Reached]:
    """Return the goals with their recorded figures: all, or those of a day.

    ``folder``: where the day's records are, if not beside the lesson.
    """
    return [compare(goal, folder or root / "lessons" / goal.day) for goal in read_goals(root) if day in ("", goal.day)]


def compare(goal: Goal, folder: Path) -> Reached:
    """Return a goal with the figures that are recorded in a lesson's folder."""
    if goal.yardstick == "record":
        return _compare_record(goal, folder.parent / goal.record)
    entry = recorded_day(folder).get(goal.name)
    if entry is None:
        return Reached(goal)
    rows = []
    for timing in (msgspec.convert(values, Timing) for values in entry["timings"]):
        value = figure(timing, goal.yardstick)
        if value is not None and goal.applies_to(timing.name, timing.dtype):
            rows.append(Row(timing.name, timing.dtype, value, goal.met_by(value), timing))
    if not rows:
        return Reached(goal)
    command = entry.get("command") or f"grader bench {goal.exercise} --device cuda --record"
    return Reached(goal, tuple(rows), entry["machine"]["device"], entry["date"], command)


def figure(timing: Timing, yardstick: str) -> float | None:
    """Return a row's figure by the name of its unit (``yardstick``); None if it was not recorded.

    The figure for "copy" is the time of a copy of the same bytes, divided by the kernel's time. If no such copy was
    timed, the figure is the kernel's bandwidth as a share of a large copy's bandwidth.
    """
    if yardstick == "torch":
        return timing.torch_ratio
    if yardstick == "microseconds":
        return timing.median_us
    if yardstick == "tflops":
        return None if timing.gigaflops_per_second is None else timing.gigaflops_per_second / 1000
    if yardstick == "copy" and timing.copy_us:
        return timing.copy_us / timing.median_us
    percent = timing.percent_of_copy if yardstick == "copy" else timing.percent_of_roofline
    return None if percent is None else percent / 100


def with_time_bars(entry: Entry, task: Exercise) -> Exercise:
    """Return the task with a time limit for each recorded size and dtype that meets a goal.

    If several goals apply to a row, the strictest one decides.
    """
    timed = {(size.name, dtype) for size in task.bench for dtype in size.dtypes or task.dtypes}
    limits: dict[tuple[str, str], TimeBar] = {}
    for found in reached(entry.root, entry.day):
        gpu = next((name for name in RECORDS if re.search(rf"\b{name}\b", found.gpu)), None)
        if found.goal.exercise != entry.name or gpu is None:
            continue
        for row in found.rows:
            key = (row.size, row.dtype)
            if row.met and row.timing is not None and key in timed:
                limit = _time_bar(found.goal, row, row.timing, gpu)
                if key not in limits or limit.at_most_us < limits[key].at_most_us:
                    limits[key] = limit
    return dataclasses.replace(task, time_bars=[*task.time_bars, *limits.values()])


def _time_bar(goal: Goal, row: Row, timing: Timing, gpu: str) -> TimeBar:
    """Return the time limit of a row that meets a goal.

    On other GPUs, a memory-bound kernel must reach a share of the roofline. A compute-bound kernel is not judged there:
    tensor cores of another generation need other instructions.
    """
    at_goal_us = goal.at_most if goal.at_most else timing.median_us * row.value / (goal.at_least or row.value)
    at_most_us = at_goal_us / SAME_GPU
    share = 0.0
    percent = timing.percent_of_roofline
    if percent and timing.percent_of_copy and math.isclose(percent, timing.percent_of_copy, rel_tol=1e-3):
        share = round(OTHER_GPU * percent / 100 * timing.median_us / at_most_us, 3)
    return TimeBar(
        row.size,
        float(f"{at_most_us:.3g}"),
        gpu,
        dtypes=(row.dtype,),
        look=f"`grader goals {goal.name}`: the goal is {goal.limit}",
        share_of_roofline=share,
    )


def _compare_record(goal: Goal, path: Path) -> Reached:
    """Return a goal with the figures of a record that is not made by ``grader bench``."""
    if not path.is_file():
        return Reached(goal)
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        figures = dict(_figures(content, goal.figure.split("/")))
        divisors = dict(_figures(content, goal.divided_by.split("/"))) if goal.divided_by else {}
        rows = []
        for name, number in figures.items():
            value = number / divisors[name] if goal.divided_by else number
            if goal.applies_to(name, ""):
                rows.append(Row(name, "", value, goal.met_by(value)))
        return (
            Reached(goal, tuple(rows), content["gpu"], content["date"], content["command"]) if rows else Reached(goal)
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise GraderError(f"{path} has no figure {goal.figure!r} for the goal of {goal.exercise}: {error}") from error


def _figures(content: Any, path: list[str], name: str = "") -> Iterator[tuple[str, float]]:
    """Yield each number at a path of a record, with its name: the keys that match the path's patterns.

    The key of a list's element is the text of its members ``name`` and ``title``.
    """
    if not path:
        yield name, float(content)
        return
    if isinstance(content, list):
        content = {" ".join(str(item[key]) for key in ("name", "title") if key in item): item for item in content}
    for key, value in content.items():
        if fnmatch.fnmatchcase(key, path[0]):
            part = key if "*" in path[0] or " " in path[0] else ""
            yield from _figures(value, path[1:], f"{name} {part}".strip())


def _number(value: float, goal: Goal) -> str:
    """Format a figure with enough digits that it does not look equal to the limit that it misses."""
    if value >= 100:
        return f"{value:,.0f}"
    limit = goal.at_least if goal.at_least is not None else goal.at_most
    same = limit is not None and round(value, 2) == round(limit, 2) and not goal.met_by(value)
    return f"{value:.3f}" if same else f"{value:.2f}"
