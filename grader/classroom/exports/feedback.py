"""The students whose results can be exported, and their feedback files."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from grader.classroom.gradebook import GradeBook
from grader.classroom.policy import Grade
from grader.setup.files import read_file


@dataclass
class Export:
    """The written files, and the students who are not in them."""

    files: list[Path] = field(default_factory=list)
    graded: int = 0
    left_out: list[str] = field(default_factory=list)
    """The reason for each omitted student, as a sentence."""


def gradable(book: GradeBook, export: Export) -> list[Grade]:
    """Return the grades of students for whom the grader did not fail. The others are left out: they must not get 0."""
    for grade in book.grades:
        if grade.failed:
            export.left_out.append(f"{grade.student!r} could not be graded yet")
    return [grade for grade in book.grades if not grade.failed]


def feedback_file(out: Path, grade: Grade, name: str) -> bytes:
    """Return the student's feedback.html or feedback.txt."""
    hint = "Run the same `grader grade` again to write missing files."
    return read_file(out / grade.folder / name, hint)
