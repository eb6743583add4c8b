"""Cells of tables that are opened in spreadsheets and contain text that students chose.

A spreadsheet recognizes a formula by its first character, and a formula can run commands or send the table elsewhere.
Such a cell gets a leading apostrophe.
"""

from __future__ import annotations

import unicodedata

_BEGINS_FORMULA = "=+-@\u2212"
"""Characters that start a formula; the last is the minus sign. Tab and carriage return also do, but are removed as
unprintable.
"""


def no_formula(text: str) -> str:
    """Return a cell that no spreadsheet treats as a formula, without control characters."""
    text = printable(text)
    # Compare the first character without variants: a spreadsheet treats full-width and small forms
    # like the plain characters, and some ignore leading blanks.
    first = unicodedata.normalize("NFKC", text).lstrip()[:1]
    return f"'{text}" if first and first in _BEGINS_FORMULA else text


def printable(text: str) -> str:
    """Replace control characters and lone surrogates."""
    return "".join(c if c.isprintable() else "?" for c in text)
