"""grades.csv and similar.csv, which are opened in spreadsheets and contain text that students chose.

A cell that would be a formula gets a leading apostrophe (``cells.py``). Every cell is quoted, so that commas,
semicolons and quotation marks cannot start a new cell.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from grader.classroom.cells import no_formula
from grader.classroom.csv_files import table
from grader.classroom.gradebook import GradeBook
from grader.classroom.incidents import LOG
from grader.classroom.result import StudentResult
from grader.classroom.similar import Pair
from grader.setup.files import write_file
from grader.verdict import words


def write_grades(out: Path, results: Sequence[StudentResult], book: GradeBook | None = None) -> Path:
    """Write grades.csv: a row per student, a column per exercise. ``book``: grades by the instructor's points."""
    exercises = sorted({v.exercise for r in results for v in r.verdicts} | {m for r in results for m in r.missing})
    own = ["late", "extra"] if book else []
    rows: list[list[str | float]] = [["student", "score", *exercises, *own, "note"]]
    for i, result in enumerate(results):
        points = {verdict.exercise: verdict.score for verdict in result.verdicts}
        score, notes, more = result.score, _notes(result), list[float]()
        if book:
            grade = book.grades[i]
            score, points, more = grade.total, grade.points, [0 - grade.late, grade.extra]
            notes += [f"{words.count(grade.days_late, 'day')} late"] * bool(grade.days_late) + grade.why
        cells = [points.get(name, 0) for name in exercises]
        rows.append([result.student, score, *cells, *more, "; ".join(notes)])
    path = out / "grades.csv"
    write_csv(path, rows)
    return path


def write_similar(out: Path, pairs: Sequence[Pair]) -> None:
    """Write similar.csv: a row for each pair of nearly identical files."""
    rows: list[list[str | float]] = [["exercise", "first", "second", "similarity"]]
    rows += [[pair.exercise, pair.first, pair.second, pair.similarity] for pair in pairs]
    write_csv(out / "similar.csv", rows)


def _notes(result: StudentResult) -> list[str]:
    notes = [result.refused] if result.refused else []
    notes += [f"{verdict.exercise} could not be graded" for verdict in result.verdicts if verdict.exit_code == 2]
    notes += [f"{LOG}: reference {reference}" for reference in result.references]
    return notes + result.remarks


def write_csv(path: Path, rows: Iterable[Iterable[str | float]]) -> None:
    """Write a table atomically. Without a byte order mark, Excel would not read it as UTF-8."""
    cells = ([no_formula(cell) if isinstance(cell, str) else f"{cell:g}" for cell in row] for row in rows)
    write_file(path, table(cells).encode("utf-8-sig", errors="replace"))
