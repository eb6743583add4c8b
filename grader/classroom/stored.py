"""Stored results of one student, with the graded files: the input of pages."""

from __future__ import annotations

import copy
import shlex
import textwrap
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from grader.classroom.cells import printable
from grader.classroom.policy import Grade
from grader.classroom.result import StudentResult
from grader.classroom.submissions import CANVAS, MOODLE, Submission
from grader.classroom.worker import in_utf8
from grader.report import theme
from grader.verdict import Verdict
from grader.verdict.record import clean

AT_HOME = (
    "To grade a file at home, run this in the course's folder, with the path of your file. The inputs will differ, and "
    "the class may be graded with more cases."
)


@dataclass(frozen=True)
class Stored:
    """One student's stored results, with the graded files."""

    name: str
    """The student's name, safe to show."""
    folder: str
    nickname: str
    result: StudentResult
    grade: Grade
    verdicts: list[Verdict] = field(default_factory=list)
    sources: dict[str, str] = field(default_factory=dict)
    """The text of the graded file, by exercise."""


def stored(submission: Submission, result: StudentResult, grade: Grade, maxima: Mapping[str, float]) -> Stored:
    """Combine a student's results and files. Each verdict gets the points of the grade."""
    verdicts = [copy.copy(verdict) for verdict in result.verdicts]
    for verdict in verdicts:
        verdict.score = grade.points[verdict.exercise]
        most = maxima.get(verdict.exercise, verdict.points)
        verdict.points = int(most) if most == int(most) else most  # type: ignore[assignment]  # only displayed, so a float is harmless
    sources = {
        verdict.exercise: _shown(submission.kernels[verdict.file])
        for verdict in verdicts
        if verdict.file in submission.kernels
    }
    return Stored(
        shown_name(submission.student), submission.folder_name, submission.nickname, result, grade, verdicts, sources
    )


def commands_at_home(verdicts: Iterable[Verdict]) -> list[str]:
    """Return the commands that grade a student's files again, one for each verdict that is not passed."""
    return [
        f"grader check {verdict.exercise} --file {shlex.quote(printable(PurePosixPath(verdict.file).name))}"
        for verdict in verdicts
        if not verdict.passed and verdict.exit_code != 2
    ]


def text_at_home(verdicts: Iterable[Verdict]) -> str:
    """Return the commands of ``commands_at_home`` with their introduction; empty if there are none."""
    if not (commands := commands_at_home(verdicts)):
        return ""
    return "\n".join(["", *textwrap.wrap(AT_HOME, theme.WIDTH), *(f"  {command}" for command in commands), ""])


def shown_name(student: str) -> str:
    """Return the student's name without what Moodle and Canvas add to the names of submissions.

    Moodle: ``NAME_NUMBER_assignsubmission_file_``. Canvas: ``lastfirst_LATE_NUMBER_NUMBER_FILE``.
    """
    name = printable(student)
    for pattern in (MOODLE, CANVAS):
        if (match := pattern.fullmatch(name)) and match["name"]:
            return match["name"]
    return name


def shown_names(students: Iterable[str]) -> dict[str, str]:
    """Return the name to show for each student of a class. Two students of the same name keep their numbers."""
    shown = {student: shown_name(student) for student in students}
    count = Counter(shown.values())
    return {student: name if count[name] == 1 else printable(student) for student, name in shown.items()}


def _shown(content: bytes) -> str:
    """Return a file's text without invisible characters, split into lines as compilers count them."""
    text = in_utf8(content).decode(errors="replace").replace("\r\n", "\n")
    return clean(text, len(text))
