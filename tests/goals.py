"""Checks of ``exercises/goals.toml``, and of sentences in lessons that state a speed, against the recorded figures."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from grader.course import Course
from grader.course.goals import Goal
from grader.judge.timing.goals import Reached, compare
from grader.setup.errors import GraderError

MARK = re.compile(r"<!--\s*goal:(.*?)-->", re.DOTALL)
_FORM = re.compile(
    r"(?P<exercise>\S+) (?P<yardstick>torch|copy|roofline|microseconds|tflops|record) (?P<sign>>=|<=|<|=)"
    r" (?P<number>[\d.]+)(?: (?P<dtype>f32|f16|bf16|i32))?(?: (?P<size>\S.*))?"
)


@dataclass(frozen=True)
class Mark:
    """A comment in a lesson, such as ``<!-- goal: softmax torch >= 1.2 f16 large -->``.

    It follows a sentence that states a speed. The figures of the exercise's recorded rows must agree with it: all rows,
    or those of the dtype and the size, which may be a shell pattern. ``=`` compares after rounding to the digits that
    the mark gives. ``day16_x/models.json record >= 2 models/*/ratio`` is for a figure of another record.
    """

    place: str
    text: str

    def problem(self, course: Course) -> str:
        """Return why the records contradict this mark of a goal in a lesson; empty if they agree."""
        form = _FORM.fullmatch(" ".join(self.text.split()))
        if form is None:
            return f"{self.place}: {self.text!r} is not EXERCISE YARDSTICK >=|<=|<|= NUMBER [DTYPE] [SIZE]"
        number, size = float(form["number"]), form["size"] or ""
        try:
            if form["yardstick"] == "record":
                goal = Goal(form["exercise"], "record", number, record=form["exercise"], figure=size, unit="{}")
            else:
                goal = Goal(
                    course.find(form["exercise"]).name,
                    form["yardstick"],  # type: ignore[arg-type]
                    at_least=number,
                    sizes=(size,) if size else (),
                    dtypes=(form["dtype"],) if form["dtype"] else (),
                )
            found = compare(goal, course.root / "lessons" / goal.day)
        except GraderError as error:
            return f"{self.place}: {error}"
        if not found.rows:
            return f"{self.place}: no recorded figure matches {self.text!r}"
        digits = len(form["number"].partition(".")[2])
        holds = {
            ">=": lambda value: value >= number,
            "<=": lambda value: value <= number,
            "<": lambda value: value < number,
            "=": lambda value: round(value, digits) == number,
        }[form["sign"]]
        wrong = [f"{row.name}: {row.value:.3f}" for row in found.rows if not holds(row.value)]
        return f"{self.place}: the record contradicts {self.text!r}: {'; '.join(wrong)}" if wrong else ""


def marks(notebook: Path) -> Iterator[Mark]:
    """Yield the marks of a lesson's text. A comment may have several, separated by semicolons.

    The comment must not begin a line: Markdown would end the paragraph before it.
    """
    for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] == "markdown":
            text = "".join(cell["source"])
            for found in MARK.finditer(text):
                place = f"{notebook.parent.name}, cell {cell['id']}"
                assert text[: found.start()].rpartition("\n")[2].strip(), f"{place}: the comment begins a line"
                yield from (Mark(place, part.strip()) for part in found[1].split(";"))


def outdated(found: Sequence[Reached]) -> list[str]:
    """Return an error for each goal whose ``why`` or ``not_recorded`` disagrees with the recorded figures."""
    errors = []
    for one in found:
        goal = f"{one.goal.title}: {one.goal.limit}"
        if one.missed and not one.goal.why:
            errors.append(f"{goal} is missed ({one.misses}): say in exercises/goals.toml why")
        if one.goal.why and not one.missed:
            errors.append(f"{goal} is {one.status}: remove its why from exercises/goals.toml")
        if not one.rows and not one.goal.not_recorded:
            errors.append(f"{goal} has no recorded figure: record it, or give the reason as not_recorded")
        if one.rows and one.goal.not_recorded:
            errors.append(f"{goal} is recorded: remove its not_recorded from exercises/goals.toml")
    return errors
