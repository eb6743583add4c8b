"""grades.csv and similar.csv, which people open in a spreadsheet, with text in them that students chose.

A spreadsheet takes a cell for a formula by its first character, and a formula can run commands or send the table away.
Such a cell gets an apostrophe in front. Every cell stands in quotation marks, so that no comma, semicolon or quotation
mark in a text begins a cell of its own.
"""

from __future__ import annotations

import csv
import io
import unicodedata
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from grader.classroom.gradebook import GradeBook
from grader.classroom.incidents import LOG
from grader.classroom.records import printable, write
from grader.classroom.similar import Pair
from grader.verdict import ERROR
from grader.verdict.wording import words

_BEGINS_FORMULA = "=+-@\u2212"
"""The last is the minus sign. Tab and carriage return, which begin one too, are no printable characters."""


def write_grades(out: Path, results: Sequence[dict[str, Any]], book: GradeBook | None = None) -> Path:
    """grades.csv: a row for each student, a column for each exercise. ``book``: by the instructor's points."""
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
    """similar.csv: a row for each two files that are nearly the same."""
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
    """Write a table, whole or not at all."""
    text = io.StringIO()
    table = csv.writer(text, quoting=csv.QUOTE_ALL)
    for row in rows:
        table.writerow([no_formula(cell) if isinstance(cell, str) else f"{cell:g}" for cell in row])
    write(path, text.getvalue())


def no_formula(text: str) -> str:
    """Return a cell that no spreadsheet takes for a formula, without control characters."""
    text = printable(text)
    # Full-width and small forms are the same characters to a spreadsheet, and some leave out blanks in front.
    first = unicodedata.normalize("NFKC", text).lstrip()[:1]
    return f"'{text}" if first and first in _BEGINS_FORMULA else text
