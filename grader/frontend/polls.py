"""Marks ``while`` loops that read volatile variables in their condition: a thread waits there for a flag.

    while (ready[b - 1] == 0) {}   ->   while (::sim::Polling(), ready[b - 1] == 0) {}

If the flag is already set when the loop begins, the thread reads it only once. That looks like a read of ordinary data,
which the race check would report. The object ``Polling`` marks the condition's reads as polling, so that the race check
treats the variable as a flag in every schedule.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from grader.frontend.tokens import Token, closing

POLLING = "::sim::Polling(), "
_END_OF_NAME = frozenset(";,=){[(")


def polls(tokens: Sequence[Token]) -> Iterator[int]:
    """Yield the positions where ``Polling`` is inserted: after the ``(`` of each condition with a volatile read."""
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
    """Return the words that show a volatile read in a condition.

    These are the names of volatile variables, those of functions with a volatile parameter, and ``volatile`` itself,
    which occurs in casts.
    """
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
