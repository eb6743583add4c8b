"""Shows a kernel file, or one piece of it, in a notebook."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path

from grader.frontend.tokens import Source, Token, closing
from grader.report.notebook.panel import Output
from grader.setup.errors import GraderError

# JupyterLab breaks the lines of `pre` anywhere, also in words, unless an output says otherwise.
BOX = (
    "background:#f6f7f8;color:#24292f;padding:0.7em 1em;line-height:1.4;white-space:pre;overflow-x:auto;"
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
    source = Source(text)
    found = re.search(rf"^[ \t]*{re.escape(beginning)}", text, re.MULTILINE)
    braces = [
        i for i, token in enumerate(source.tokens) if found and token.start >= found.start() and token.text == "{"
    ]
    opened = next(iter(braces), None)
    if found is None or opened is None:
        raise GraderError(f"{file} has no statement with a block that begins with {beginning!r}")
    first, last = source.line(found.start()), _last_line(source, opened)
    indent = found[0].removesuffix(beginning)
    # Remove the indentation. Preprocessor lines have none, so removeprefix does not change them.
    return "\n".join(line.removeprefix(indent) for line in text.splitlines()[first - 1 : last])


def function(text: str, name: str, file: str = "the file") -> str:
    """Return one function or struct of a C++ source, from the comment above it to its closing brace."""
    source = Source(text)
    bodies = {source.tokens[i].text: (i, opened) for i, opened in reversed(list(_bodies(source.tokens)))}
    if name not in bodies:
        known = ", ".join(bodies) or "none"
        raise GraderError(f"{file} defines no function {name!r}", f"The defined functions are: {known}.")
    named, opened = bodies[name]
    start = named
    while start and source.tokens[start - 1].text not in (";", "{", "}"):
        start -= 1
    first = source.line(source.tokens[start].start)
    above = source.line(source.tokens[start - 1].end) if start else 0
    while first - 1 > above and (line := source.line_text(first - 1).strip()) and not line.startswith("#"):
        first -= 1  # a comment directly above belongs to the function
    return "\n".join(text.splitlines()[first - 1 : _last_line(source, opened)])


def _bodies(tokens: Sequence[Token]) -> Iterator[tuple[int, int]]:
    """Yield the index of the name of each function and struct, and that of the brace that opens its body."""
    for i, token in enumerate(tokens[:-1]):
        if token.kind != "word" or token.text in ("if", "constexpr", "for", "while", "switch"):
            continue
        after = i + 1
        if tokens[after].text == "(":
            after = (closing(tokens, after) or i) + 1
            while after < len(tokens) and tokens[after].kind == "word":
                after += 1
        elif not {"struct", "class", "union"} & {before.text for before in tokens[max(0, i - 8) : i]}:
            continue
        if after < len(tokens) and tokens[after].text == "{":
            yield i, after


def _last_line(source: Source, opened: int) -> int:
    """Return the line of the brace that closes the one at token ``opened``."""
    closed = closing(source.tokens, opened)
    return source.line(source.tokens[-1 if closed is None else closed].start)
