"""grades.json in a folder of results: every student's grades. Exports and pages are created from it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import msgspec

from grader.classroom.policy import Grade, Policy, grade
from grader.classroom.result import StudentResult
from grader.classroom.submissions import Submission
from grader.course import Course
from grader.setup.errors import GraderError
from grader.setup.files import read_file, write_file

FILE = "grades.json"
FORMAT = 1


class GradeBook(msgspec.Struct, kw_only=True):
    """The grades of a class."""

    format: int = FORMAT
    maxima: dict[str, float]
    """The maximum points of each exercise that was submitted or requested."""
    stages: dict[str, dict[str, float]] = {}
    """The points of each stage, for exercises with partial points."""
    grades: list[Grade]

    @property
    def maximum(self) -> float:
        """Return the sum of the exercises' maximum points."""
        return round(sum(self.maxima.values()), 2)


def make(
    course: Course, submissions: Sequence[Submission], results: Sequence[StudentResult], policy: Policy
) -> GradeBook:
    """Create the gradebook from the stored results, in the order of the submissions."""
    names = {v.exercise for r in results for v in r.verdicts} | {name for r in results for name in r.missing}
    maxima = policy.maxima({e.name: float(e.points) for e in course.exercises if e.name in names})
    grades = [grade(policy, result, one.folder_name, maxima) for one, result in zip(submissions, results)]
    stages = {name: policy.stages[name] for name in maxima if name in policy.stages}
    return GradeBook(maxima=maxima, stages=stages, grades=grades)


def save(book: GradeBook, out: Path) -> None:
    """Write grades.json."""
    write_file(out / FILE, json.dumps(msgspec.to_builtins(book), indent=1) + "\n")  # names may contain lone surrogates


def load(out: Path) -> GradeBook:
    """Read grades.json. Raise a GraderError that says how to create it if there is none."""
    path = out / FILE
    hint = f"Name the folder that `grader grade FOLDER --out {out}` wrote."
    try:
        book = msgspec.convert(json.loads(read_file(path, hint)), GradeBook)
    except (ValueError, RecursionError, msgspec.ValidationError) as error:
        raise GraderError(f"{path} is not a valid grades.json: {error}", hint) from error
    if book.format != FORMAT:
        raise GraderError(f"{path} has the format {book.format}; this grader reads {FORMAT}", hint)
    return book
