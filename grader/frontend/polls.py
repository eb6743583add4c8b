"""Marks loops whose condition depends on a volatile read: a thread waits there for a flag.

    while (ready[b - 1] == 0) {}                  ->   while (::sim::Polling(), ready[b - 1] == 0) {}
    do { seen = ready[b - 1]; } while (!seen);    ->   do { seen = (::sim::Polling(), ready[b - 1]); } while (!seen);

If the flag is already set when the loop begins, the thread reads it only once. That looks like a read of ordinary data,
which the race check would report. The object ``Polling`` marks these reads as polling, so that the race check treats
the variable as a flag in every schedule. In ``seen = *flag; while (!seen) seen = *flag;``, both reads are marked.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence

from grader.frontend.tokens import Token, closing, opening, split_commas

POLLING = "::sim::Polling(), "
_LONGEST = 200
"""The length, in tokens, of the part of a loop's body that is searched for reads."""
_END_OF_NAME = frozenset(";,=){[(")


def polls(tokens: Sequence[Token]) -> Iterator[tuple[int, str]]:
    """Yield positions and the texts to insert there, so that ``Polling`` marks the reads by which a loop waits."""
    names = _volatile_names(tokens)
    if not names:
        return
    assignments = [k for k, token in enumerate(tokens) if token.text == "=" and k and _begins(tokens, k - 1)]
    marked: set[int] = set()
    for i, token in enumerate(tokens):
        if token.text != "while" or i + 1 >= len(tokens) or tokens[i + 1].text != "(":
            continue
        close = closing(tokens, i + 1)
        condition = [t.text for t in tokens[i + 2 : close]] if close is not None else []
        if names.intersection(condition) and not _declares(condition):
            yield tokens[i + 1].end, POLLING
        begin, end = _body(tokens, i, close) if close is not None else (i, i)
        for equals in assignments[bisect_left(assignments, begin) : bisect_left(assignments, end)]:
            if equals in marked or tokens[equals - 1].text not in condition:
                continue
            for one in _volatile_reads(tokens, equals, end, i, names):
                if one not in marked:
                    marked.add(one)
                    yield tokens[one + 1].start, f"({POLLING}"
                    yield next(tokens[k].start for k in range(one, len(tokens)) if tokens[k].text == ";"), ")"


def _volatile_reads(tokens: Sequence[Token], equals: int, end: int, loop: int, names: set[str]) -> Iterator[int]:
    """Yield the index of the ``=`` of an assignment in a loop's body, if its right side has a volatile read.

    If the same assignment is directly before the ``while`` at the index ``loop``, yield the index of its ``=``, too.
    """
    last = next((k for k in range(equals, end) if tokens[k].text == ";"), None)
    right = tokens[equals + 1 : last]
    texts = [t.text for t in right]
    if last is None or names.isdisjoint(texts) or len(split_commas(right)) > 1:  # seen = *flag, ++n;
        return
    # seen = {*flag}; or a lambda or the header of a for loop, where the next ";" does not end the assignment
    if "{" in texts or texts.count("(") != texts.count(")"):
        return
    yield equals
    assignment = [t.text for t in tokens[equals - 1 : last + 1]]
    before = loop - len(assignment)
    if before >= 0 and [t.text for t in tokens[before:loop]] == assignment:
        yield before + 1


def _body(tokens: Sequence[Token], loop: int, close: int) -> tuple[int, int]:
    """Return the first index of a loop's body and the index after its last one, at most ``_LONGEST`` tokens apart.

    ``loop`` is the index of ``while``, and ``close`` that of the ``)`` of its condition.
    """
    if tokens[loop - 1].text == "}" and (opened := opening(tokens, loop - 1)) and tokens[opened - 1].text == "do":
        return max(opened, loop - _LONGEST), loop
    if tokens[loop - 1].text == ";":  # do seen = ready; while (!seen);
        do = next((k for k in range(loop - 2, -1, -1) if tokens[k].text in ("do", ";", "{", "}")), 0)
        if tokens[do].text == "do":
            return max(do + 1, loop - _LONGEST), loop
    farthest = min(len(tokens), close + _LONGEST)
    if close + 1 < len(tokens) and tokens[close + 1].text == "{":
        return close + 1, min(closing(tokens, close + 1) or farthest, farthest)
    return close + 1, next((k + 1 for k in range(close, farthest) if tokens[k].text == ";"), farthest)


def _begins(tokens: Sequence[Token], first: int) -> bool:
    """Return whether a statement begins at this index."""
    return first > 0 and tokens[first - 1].text in ("do", ";", "{", "}", ")")


def _volatile_names(tokens: Sequence[Token]) -> set[str]:
    """Return the words that show a volatile read in a condition.

    These are the names of volatile variables, those of functions with a volatile parameter, and ``volatile`` itself,
    which occurs in casts.
    """
    names: set[str] = set()
    outer = 0  # the index of the last "(", ";", "{" or "}"
    waiting = False  # whether the name that a volatile declares is still to come
    for i, token in enumerate(tokens):
        if waiting and token.text in _END_OF_NAME:
            names.add(tokens[i - 1].text)
            waiting = False
        if token.text in ("(", ";", "{", "}"):
            outer = i
        if token.text != "volatile" or (i and tokens[i - 1].text in ("asm", "__asm", "__asm__")):
            continue
        names.add("volatile")
        waiting = True
        if outer and tokens[outer].text == "(":
            names.add(tokens[outer - 1].text)
    if waiting:
        names.add(tokens[-1].text)
    return names - {">", ")", "*"}


def _declares(condition: Sequence[str]) -> bool:
    """Return whether the condition declares a variable: ``while (int left = ...)``."""
    depth = 0
    for text in condition:
        depth += (text in "([{") - (text in ")]}")
        if depth == 0 and text == "=":
            return True
    return False
