"""Statistics of a lesson: words, long paragraphs and listings, questions, and the share of a solution that it shows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import nbformat

from grader.course import Day, Entry
from grader.setup.errors import GraderError

PARAGRAPH = 90
"""The maximum number of words of a paragraph."""
LISTING = 40
"""The maximum number of lines of a listing that is not folded."""
SHOWN = 0.6
"""The maximum share of a solution's own lines that a lesson shows before it sets the exercise."""
FOLDED = "hide-input"
"""The tag of a cell whose source stays folded until the reader opens it."""

_EXERCISES = re.compile(r"^#+ (?:\d+\. )?Exercises?\b", re.MULTILINE | re.IGNORECASE)
_FENCE = re.compile(r"^(```+|~~~+)[^\n]*\n(.*?)^\1`*\s*$", re.MULTILINE | re.DOTALL)
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_NO_PROSE = re.compile(r"\s*(?:#|\||```|\$\$|<|!\[)")
"""The beginning of a block that is a heading, a table, code, a formula, HTML or a picture."""
_ITEM = re.compile(r"^\s*(?:[-*]|\d+\.) ", re.MULTILINE)


@dataclass(frozen=True)
class Place:
    """A paragraph or a listing that is too long: its cell, counted from 1, and its length."""

    cell: int
    size: int
    begins: str


@dataclass
class Figures:
    """The statistics of one lesson."""

    words: int = 0
    """The number of words of the text, without code and tables."""
    paragraphs: list[Place] = field(default_factory=list)
    """Paragraphs of more than PARAGRAPH words."""
    listings: list[Place] = field(default_factory=list)
    """Listings of more than LISTING lines that are not folded."""
    questions: int = 0
    """The number of cells that ask for a prediction."""


def figures(notebook: Path) -> Figures:
    """Return the statistics of a lesson."""
    found = Figures()
    for number, cell in enumerate(cells_of(notebook), 1):
        source = cell["source"]
        if cell["cell_type"] == "markdown":
            for block in _paragraphs(source):
                count = len(block.split())
                found.words += count
                if count > PARAGRAPH:
                    found.paragraphs.append(Place(number, count, " ".join(block.split()[:6])))
        elif re.search(r"^\s*predict\(", source, re.MULTILINE):
            found.questions += 1
        for listing in _listings(cell):
            lines = listing.strip("\n").splitlines()
            if len(lines) > LISTING:
                found.listings.append(Place(number, len(lines), lines[0].strip()))
    return found


def shown_share(day: Day, entry: Entry) -> float:
    """Return the share of the lines to write that the lesson shows before it sets the exercise.

    A learner must write the solution's lines that the skeleton lacks, except comments, braces and includes. Folded code
    does not count as shown.
    """
    given = set(_code_lines(entry.skeleton.read_text(encoding="utf-8")))
    to_write = {line for line in _code_lines(entry.solution.read_text(encoding="utf-8")) if line not in given}
    shown: set[str] = set()
    set_apart = False
    for cell in cells_of(day.lesson):
        source = cell["source"]
        if cell["cell_type"] == "markdown":
            headings = re.findall(r"^#+ .*", _FENCE.sub("", source), re.MULTILINE)
            set_apart = bool(_EXERCISES.match(headings[-1])) if headings else set_apart
            if set_apart and f"`{entry.variable}`" in source:
                break
        for listing in _listings(cell):
            shown.update(_code_lines(listing))
    return len(to_write & shown) / len(to_write) if to_write else 0.0


def cells_of(notebook: Path) -> list[Any]:
    """Return the cells of a notebook."""
    try:
        return list(nbformat.reads(notebook.read_text(encoding="utf-8"), as_version=4).cells)
    except (OSError, nbformat.ValidationError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise GraderError(f"{notebook} is not a notebook: {error}", "Create it with JupyterLab.") from error


def _paragraphs(markdown: str) -> Iterator[str]:
    """Yield the paragraphs and list items of a text."""
    for block in re.split(r"\n\s*\n", _COMMENT.sub("", _FENCE.sub("", markdown))):
        if block.strip() and not _NO_PROSE.match(block):
            yield from (item for item in _ITEM.split(block) if item.strip())


def _listings(cell: Any) -> Iterator[str]:
    """Yield the code that a cell shows unfolded: its source, fenced code, and the output of show_source."""
    source = cell["source"]
    if cell["cell_type"] == "markdown":
        yield from (fence[2] for fence in _FENCE.finditer(source))
        return
    if cell["cell_type"] != "code":
        return
    if FOLDED not in cell["metadata"].get("tags", ()):
        yield source
    if "show_source(" in source:
        for output in cell["outputs"]:
            data = output.get("data", {})
            if "text/plain" in data and not data.get("text/html", "").lstrip().startswith("<details"):
                yield data["text/plain"]


def _code_lines(text: str) -> list[str]:
    """Return the lines of code: without comments, blank lines, braces and preprocessor directives."""
    plain = re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.DOTALL)
    lines = (" ".join(line.split()) for line in plain.splitlines())
    return [line for line in lines if len(re.sub(r"\W", "", line)) > 3 and not line.startswith("#")]
