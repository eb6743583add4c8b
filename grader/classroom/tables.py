"""grades.csv and similar.csv, which are opened in spreadsheets and contain text that students chose.

A spreadsheet recognizes a formula by its first character, and a formula can run commands or send the table elsewhere.
Such a cell gets a leading apostrophe. Every cell is quoted, so that commas, semicolons and quotation marks cannot start
a new cell.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from grader.classroom.csv_files import table
from grader.classroom.gradebook import GradeBook
from grader.classroom.incidents import LOG
from grader.classroom.records import printable
from grader.classroom.similar import Pair
from grader.setup.files import write_file
from grader.verdict import ERROR, words

_BEGINS_FORMULA = "=+-@\u2212"
"""Characters that start a formula; the last is the minus sign. Tab and carriage return also do, but are removed as
unprintable.
"""


def write_grades(out: Path, results: Sequence[dict[str, Any]], book: GradeBook | None = None) -> Path:
    """Write grades.csv: a row per student, a column per exercise. ``book``: grades by the instructor's points."""
    exercises = sorted(
        {v["exercise"] for r in results for v in r["verdicts"]} | {m for r in results for m in r["missing"]}
    )
    own = ["late", "extra"] if book else []
    rows: list[list[str | float]] = [["student", "score", *exercises, *own, "note"]]
    for i, result in enumerate(results):
        points = {v["exercise"]: v["score"] for v in result["verdicts"]}
        score, notes, more = result["score"], _notes(result), list[float]()
        if book:
            grade = book.grades[i]
            score, points, more = grade.total, grade.points, [0 - grade.late, grade.extra]
            notes += [f"{words.count(grade.days_late, 'day')} late"] * bool(grade.days_late) + grade.why
        cells = [points.get(name, 0) for name in exercises]
        rows.append([result["student"], score, *cells, *more, "; ".join(notes)])
    path = out / "grades.csv"
    write_csv(path, rows)
    return path


def write_similar(out: Path, pairs: Sequence[Pair]) -> None:
    """Write similar.csv: a row for each pair of nearly identical files."""
    rows: list[list[str | float]] = [["exercise", "first", "second", "similarity"]]
    rows += [[pair.exercise, pair.first, pair.second, pair.similarity] for pair in pairs]
    write_csv(out / "similar.csv", rows)


def _notes(result: dict[str, Any]) -> list[str]:
    notes = [result["refused"]] if result["refused"] else []
    for verdict in result["verdicts"]:
        if any(stage["status"] == ERROR for stage in verdict["stages"]):
            notes.append(f"{verdict['exercise']} could not be graded")
    notes += [f"{LOG}: reference {reference}" for reference in result["references"]]
    return notes + result["remarks"]


def write_csv(path: Path, rows: Iterable[Iterable[str | float]]) -> None:
    """Write a table atomically."""
    cells = ([no_formula(cell) if isinstance(cell, str) else f"{cell:g}" for cell in row] for row in rows)
    write_file(path, table(cells))


def no_formula(text: str) -> str:
    """Return a cell that no spreadsheet treats as a formula, without control characters."""
    text = printable(text)
    # Compare the first character without variants: a spreadsheet treats full-width and small forms
    # like the plain characters, and some ignore leading blanks.
    first = unicodedata.normalize("NFKC", text).lstrip()[:1]
    return f"'{text}" if first and first in _BEGINS_FORMULA else text
