"""Shows a kernel file, or one piece of it, in a notebook."""

from __future__ import annotations

import re
from html import escape
from pathlib import Path

from grader.report.notebook.panel import Output
from grader.setup.errors import GraderError

BOX = (
    "background:#f6f7f8;color:#24292f;padding:0.7em 1em;line-height:1.4;overflow-x:auto;"
    "font-family:ui-monospace,Menlo,Consolas,monospace;font-size:0.9em"
)


class Listing(Output):
    """A source text, which notebooks show highlighted. ``str`` returns it unchanged.

    ``folded``: a title under which a notebook hides the text until the reader opens it.
    """

    def __init__(self, text: str, folded: str = "") -> None:
        self.text = text
        self.folded = folded

    def __str__(self) -> str:
        return self.folded or self.text

    def html(self) -> str:
        """Return the text as HTML with its own colors, readable on light and dark pages."""
        code = "\n".join(colored(self.text)).rstrip()
        listing = f'<pre style="{BOX}">{code}</pre>'
        if self.folded:
            return f"<details><summary>{escape(self.folded)}</summary>{listing}</details>"
        return listing


def colored(text: str) -> list[str]:
    """Return the lines of a CUDA source as HTML."""
    from pygments import highlight
    from pygments.formatters import HtmlFormatter
    from pygments.lexers import CudaLexer

    formatter = HtmlFormatter(noclasses=True, style="friendly", nobackground=True, nowrap=True)
    return str(highlight(text, CudaLexer(stripnl=False), formatter)).removesuffix("\n").split("\n")


def show_source(file: str | Path, *names: str, part: str = "", folded: str = "") -> Listing:
    """Return the text of a kernel file; with ``names`` only those functions, each with the comment above it.

    ``part``: only the statement that begins with this text, to its closing brace, such as an inner loop.
    ``folded``: a title under which a notebook hides the text until the reader opens it.
    """
    path = Path(file)
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise GraderError(f"cannot read {path.name}: {error.strerror}") from error
    if names:
        text = "\n\n".join(function(text, name, path.name) for name in names)
    if part:
        text = statement(text, part, path.name)
    return Listing(text.strip("\n"), folded)


def statement(text: str, beginning: str, file: str = "the file") -> str:
    """Return the statement that begins with ``beginning``, up to the line with the brace that closes its block."""
    masked = _masked(text)
    found = re.search(rf"^[ \t]*{re.escape(beginning)}", text, re.MULTILINE)
    opening = masked.find("{", found.start()) if found else -1
    if found is None or opening < 0:
        raise GraderError(f"{file} has no statement with a block that begins with {beginning!r}")
    end = text.find("\n", _matching_brace(masked, opening))
    indent = found[0].removesuffix(beginning)
    lines = text[found.start() : end if end >= 0 else len(text)].splitlines()
    # Remove the indentation. Preprocessor lines have none, so removeprefix does not change them.
    return "\n".join(line.removeprefix(indent) for line in lines)


def function(text: str, name: str, file: str = "the file") -> str:
    """Return one function or struct of a C++ source, from the comment above it to its closing brace."""
    masked = _masked(text)
    struct = re.search(rf"\b(?:struct|class|union)\b[^;{{()]*(?:\([^)]*\)[^;{{()]*)?\b{re.escape(name)}\s*\{{", masked)
    if struct:
        return _dedent_start(text, masked, struct.start(), _matching_brace(masked, struct.end() - 1))
    for match in re.finditer(rf"\b{re.escape(name)}\s*\(", masked):
        opening = _parameters_end(masked, match.end() - 1)
        if opening is None:
            continue
        end = _matching_brace(masked, opening)
        return _dedent_start(text, masked, match.start(), end)
    defined = re.findall(r"\b(\w+)\s*\([^;{}()]*\)\s*\{", masked)
    known = ", ".join(dict.fromkeys(word for word in defined if word not in ("if", "for", "while", "switch")))
    raise GraderError(f"{file} defines no function {name!r}", f"The defined functions are: {known or 'none'}.")


def _masked(text: str) -> str:
    """Replace comments and literals by blanks, so that braces in them do not count."""
    pattern = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", re.DOTALL)
    return pattern.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)


def _parameters_end(masked: str, opening: int) -> int | None:
    """Return the position of the brace that opens the body after a parameter list; None if there is no body."""
    depth = 0
    for position in range(opening, len(masked)):
        depth += (masked[position] == "(") - (masked[position] == ")")
        if depth == 0:
            brace = re.match(r"[\s\w]*\{", masked[position + 1 :])
            return position + brace.end() if brace else None
    return None


def _matching_brace(masked: str, opening: int) -> int:
    depth = 0
    for position in range(opening, len(masked)):
        depth += (masked[position] == "{") - (masked[position] == "}")
        if depth == 0:
            return position + 1
    return len(masked)


def _dedent_start(text: str, masked: str, name_at: int, end: int) -> str:
    """Return the lines of a function from its template line, attributes and comment to ``end``."""
    # Everything since the last statement or brace at file level is part of the declaration.
    start = max(masked.rfind(character, 0, name_at) for character in ";}") + 1
    lines_before = text[:name_at].count("\n")
    lines = text.splitlines()
    first = text[:start].count("\n")
    while first < lines_before and (not lines[first].strip() or lines[first].lstrip().startswith("#")):
        first += 1
    # If a statement ends on the first line, it belongs to the previous declaration: skip this line.
    line_start = text.rfind("\n", 0, start) + 1
    if first == text[:start].count("\n") and masked[line_start:start].strip():
        first += 1
        while first < lines_before and (not lines[first].strip() or lines[first].lstrip().startswith("#")):
            first += 1
    # A comment that is followed by an empty line is about something else.
    for number in range(lines_before - 1, first - 1, -1):
        if not lines[number].strip() or lines[number].lstrip().startswith("#"):
            first = number + 1
            break
    return "\n".join(lines[first : text[:end].count("\n") + 1])
