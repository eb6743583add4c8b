"""Read and write CSV files."""

from __future__ import annotations

import codecs
import csv
import io
from collections.abc import Iterable, Sequence
from pathlib import Path

from grader.setup.errors import GraderError
from grader.setup.files import read_file


def read_csv(path: Path, hint: str) -> list[list[str]]:
    """Return the rows of a file; ``hint``: where to get such a file.

    Excel separates cells by semicolons where a comma is the decimal point, and by tabs in "Unicode text" (UTF-16).
    """
    content = read_file(path, hint)
    try:
        in_utf16 = content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
        text = content.decode("utf-16" if in_utf16 else "utf-8-sig")
        separator = max(",;\t", key=text.partition("\n")[0].count)
        return list(csv.reader(io.StringIO(text, newline=""), delimiter=separator))
    except (UnicodeDecodeError, csv.Error) as error:
        raise GraderError(
            f"{path} is not a CSV file in UTF-8: {error}", f'{hint}\nExcel: save it as "CSV UTF-8".'
        ) from error


def read_table(path: Path, columns: Sequence[str], hint: str) -> list[list[str]]:
    """Return the rows of a file whose first row has all of ``columns``, all rows of equal length."""
    rows = [row for row in read_csv(path, hint) if row]
    missing = [column for column in columns if not rows or column not in rows[0]]
    if missing:
        raise GraderError(f"{path} has no column {missing[0]!r}", hint)
    width = len(rows[0])
    return [row + [""] * (width - len(row)) for row in rows]


def number_in(text: str) -> float | None:
    """Return a number with a decimal point or comma; None for other text. The other mark may separate thousands."""
    marks = [character for character in text if character in ".,"]
    if marks:
        text = text.replace("," if marks[-1] == "." else ".", "").replace(marks[-1], ".")
    try:
        return float(text)
    except ValueError:
        return None


def table(rows: Iterable[Iterable[str]]) -> str:
    """Return the content of a CSV file with these rows. Each cell is quoted."""
    text = io.StringIO()
    csv.writer(text, quoting=csv.QUOTE_ALL).writerows(rows)
    return text.getvalue()
