"""Conditions of ``while`` loops that read volatile variables: a thread that waits for a flag.

    while (ready[b - 1] == 0) {}   ->   while (::sim::Polling(), ready[b - 1] == 0) {}

If the flag is set already, the thread reads it only once, like data. The object marks the reads of the condition as
polling, so that the race check takes the variable for a flag whatever the schedule is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from grader.frontend.tokens import Token, closing

POLLING = "::sim::Polling(), "
_END_OF_NAME = frozenset(";,=){[(")


def polls(tokens: Sequence[Token]) -> Iterator[int]:
    """Yield the position after the ``(`` of each such condition."""
    names = _volatile_names(tokens)
    if not names:
        return
    for i, token in enumerate(tokens):
        if token.text != "while" or i + 1 >= len(tokens) or tokens[i + 1].text != "(":
            continue
        close = closing(tokens, i + 1)
        condition = [t.text for t in tokens[i + 2 : close]] if close is not None else []
        if names.intersection(condition) and not _declares(condition):
            yield tokens[i + 1].end


def _volatile_names(tokens: Sequence[Token]) -> set[str]:
    """Return the names declared volatile, the functions with a volatile parameter, and ``volatile`` for casts."""
    names: set[str] = set()
    for i, token in enumerate(tokens):
        if token.text != "volatile" or (i and tokens[i - 1].text in ("asm", "__asm", "__asm__")):
            continue
        end = next((k for k in range(i, len(tokens)) if tokens[k].text in _END_OF_NAME), len(tokens))
        names |= {"volatile", tokens[end - 1].text}
        outer = next((k for k in range(i, -1, -1) if tokens[k].text in ("(", ";", "{", "}")), 0)
        if tokens[outer].text == "(" and outer:
            names.add(tokens[outer - 1].text)
    return names - {">", ")", "*"}


def _declares(condition: Sequence[str]) -> bool:
    """Return whether the condition declares a variable: ``while (int left = ...)``."""
    depth = 0
    for text in condition:
        depth += (text in "([{") - (text in ")]}")
        if depth == 0 and text == "=":
            return True
    return False
