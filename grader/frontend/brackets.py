"""Finds a bracket that is never closed, or that closes no other bracket.

A missing bracket causes other errors, which mislead: the functions after it seem to be code inside the function before
it. The front end therefore reports the bracket instead.
"""

from __future__ import annotations

from grader.frontend.messages import RewriteError
from grader.frontend.tokens import CLOSERS, DEPTH, OPENERS, Source, Token


def unpaired(source: Source) -> RewriteError | None:
    """Return an error at the first unmatched bracket; None if all brackets match, or if macros contain brackets."""
    if any(token.text in DEPTH for macro in source.macros for token in macro.body):
        return None
    # The open brackets, with the token before each and the first token of its statement.
    opened: list[tuple[Token, str, Token]] = []
    outdented: Token | None = None
    before, statement = "", None
    for token in source.tokens:
        if statement is None or before in ("{", "}", ";"):
            statement = token
        if token.text in OPENERS and token.kind == "mark":
            opened.append((token, before, statement))
        elif token.text in CLOSERS and token.kind == "mark":
            if not opened:
                return source.error(token, f"'{token.text}' closes no bracket")
            first, _, outer = opened.pop()
            if OPENERS[first.text] != token.text:
                return _never_closed(source, first)
            if outdented is None and _begins_line(source, token) and _indent(source, token) < _indent(source, outer):
                outdented = first
        elif token.text == ";" and opened and opened[-1][0].text != "{" and opened[-1][1] != "for":
            return _never_closed(source, opened[-1][0])
        before = token.text
    return _never_closed(source, outdented or opened[0][0]) if opened else None


def _never_closed(source: Source, token: Token) -> RewriteError:
    return source.error(token, f"'{token.text}' is never closed", f"Add the missing '{OPENERS[token.text]}'.")


def _indent(source: Source, token: Token) -> int:
    line = source.line_text(source.line(token.start))
    return len(line) - len(line.lstrip())


def _begins_line(source: Source, token: Token) -> bool:
    return source.column(token.start) == _indent(source, token) + 1
