"""Read and write CSV files of learning systems. Only the cells with grades change."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from pathlib import Path

from grader.setup.errors import GraderError


def read_table(path: Path, columns: Sequence[str], hint: str) -> list[list[str]]:
    """Return the rows of a file whose first row has all of ``columns``; ``hint``: where to get such a file."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            rows = [row for row in csv.reader(file) if row]
    except OSError as error:
        raise GraderError(f"{path} cannot be read: {error.strerror}", hint) from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise GraderError(f"{path} is not a CSV file in UTF-8: {error}", hint) from error
    missing = [column for column in columns if not rows or column not in rows[0]]
    if missing:
        raise GraderError(f"{path} has no column {missing[0]!r}", hint)
    width = len(rows[0])
    return [row + [""] * (width - len(row)) for row in rows]


def table(rows: Iterable[Sequence[str]]) -> bytes:
    """Return the content of a CSV file with these rows."""
    text = io.StringIO()
    csv.writer(text, quoting=csv.QUOTE_ALL).writerows(rows)
    return text.getvalue().encode(errors="replace")


def points(total: float) -> str:
    """Format points in a way that all learning systems can read: without trailing zeros."""
    return f"{total:g}"
