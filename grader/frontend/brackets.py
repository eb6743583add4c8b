"""Finds the bracket without its pair that explains another error of a file.

After a missing bracket, the functions that follow seem to be code of the kernel before them.
"""

from __future__ import annotations

from grader.frontend.rewrite_error import RewriteError, error_at
from grader.frontend.tokens import Source, Token

_PAIRS = {"(": ")", "[": "]", "{": "}"}


def unpaired(source: Source) -> RewriteError | None:
    """Return an error at the first bracket without its pair; None if all have one, or if macros may contain them."""
    if any(token.text in _PAIRS or token.text in _PAIRS.values() for macro in source.macros for token in macro.body):
        return None
    opened: list[tuple[Token, str]] = []  # with the word before it
    outdented: Token | None = None
    before = ""
    for token in source.tokens:
        if token.text in _PAIRS and token.kind == "mark":
            opened.append((token, before))
        elif token.text in _PAIRS.values() and token.kind == "mark":
            if not opened:
                return error_at(source, token, f"'{token.text}' closes no bracket")
            first, _ = opened.pop()
            if _PAIRS[first.text] != token.text:
                return _never_closed(source, first)
            if outdented is None and _begins_line(source, token) and _indent(source, token) < _indent(source, first):
                outdented = first
        elif token.text == ";" and opened and opened[-1][0].text != "{" and opened[-1][1] != "for":
            return _never_closed(source, opened[-1][0])
        before = token.text
    return _never_closed(source, outdented or opened[0][0]) if opened else None


def _never_closed(source: Source, token: Token) -> RewriteError:
    return error_at(source, token, f"'{token.text}' is never closed", f"Add the missing '{_PAIRS[token.text]}'.")


def _indent(source: Source, token: Token) -> int:
    line = source.line_text(source.line(token.start))
    return len(line) - len(line.lstrip())


def _begins_line(source: Source, token: Token) -> bool:
    return source.column(token.start) == _indent(source, token) + 1
