"""Detection of the endless loop among the loops around the line where a thread was stopped.

A thread is often stopped in an inner loop that does end. A loop that counts a variable up or down to a bound, and does
not assign the variable otherwise, is assumed to end. The innermost loop that does not count in this way is reported as
endless. It may call the function in which the thread was stopped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from grader.frontend.functions import Function, collect
from grader.frontend.messages import RewriteError
from grader.frontend.tokens import Source, Token, Tokens, closing, join

MOST_CHARACTERS = 1 << 20
MOST_TOKENS = 500
"""The maximum number of tokens of a body without braces."""

_UNSIGNED = ("unsigned", "size_t", "uint8_t", "uint16_t", "uint32_t", "uint64_t")

_STEP = re.compile(r"(?:(\w+)(\+\+|--)|(\+\+|--)(\w+)|(\w+)(\+|-|\*|/|>>|<<)=(.+))")


@dataclass(frozen=True)
class _Loop:
    first: int
    last: int
    kind: str
    header: Sequence[Token]
    body: Sequence[Token]


def endless_loop(text: str, line: int, in_kernel: int = 0) -> int:
    """Return the first line of the endless loop around a line; 0 if no such loop is known.

    If no loop around the line is endless, it is one around a call of the function. ``in_kernel``: the kernel's line
    where the function was inlined, 0 if it was not.
    """
    if len(text) > MOST_CHARACTERS:
        return 0
    source = Source(text)
    endless = [loop for loop in _loops(source) if not _ends(loop)]
    if found := _around(endless, line) or _around(endless, in_kernel):
        return found
    try:
        functions = [function for function in collect(source, source.tokens).functions if function.body]
    except RewriteError:  # too much code to search
        return 0
    callers = _around_calls(source, functions, endless, line, set())
    return callers.pop() if len(callers) == 1 else 0


def _around(loops: Sequence[_Loop], line: int) -> int:
    """Return the first line of the innermost of these loops around a line; 0 if there is none."""
    return next((loop.first for loop in reversed(loops) if loop.first <= line <= loop.last), 0)


def _around_calls(
    source: Source, functions: Sequence[Function], loops: Sequence[_Loop], line: int, seen: set[str]
) -> set[int]:
    """Return the first lines of the innermost loops around the calls of the function around a line."""
    tokens = source.tokens
    name = next((f.name for f in functions if _line(source, f.body[0]) <= line <= _line(source, f.body[-1])), "")
    if not name or name in seen:
        return set()
    seen.add(name)
    found = set()
    for function in functions:
        for i in function.body[:-1] if function.name != name else ():
            if tokens[i].text == name and tokens[i + 1].text in ("(", "<"):
                called_at = _line(source, i)
                loop = _around(loops, called_at)
                found |= {loop} if loop else _around_calls(source, functions, loops, called_at, seen)
    return found


def _line(source: Source, index: int) -> int:
    return source.line(source.tokens[index].start)


def _loops(source: Source) -> Iterator[_Loop]:
    """Yield the loops in the order of the text, so that inner loops follow outer ones."""
    tokens = source.tokens
    ends_of_do: set[int] = set()
    for i, token in enumerate(tokens):
        if token.kind != "word" or token.text not in ("for", "while", "do") or i in ends_of_do:
            continue
        start = i + 1
        header: Sequence[Token] = []
        if token.text != "do":
            close = closing(tokens, start)
            if close is None:
                continue
            header, start = tokens[start + 1 : close], close + 1
        end = _end(tokens, start)
        body = tokens[start : end + 1]
        if token.text == "do" and (close := closing(tokens, end + 2)) is not None:
            ends_of_do.add(end + 1)
            header, end = tokens[end + 3 : close], close
        yield _Loop(source.line(token.start), source.line(tokens[end].start), token.text, header, body)


def _end(tokens: Tokens, start: int) -> int:
    """Return the last token of a loop's body."""
    i = start
    while i < min(len(tokens), start + MOST_TOKENS):
        if tokens[i].text == ";":
            return i
        close = closing(tokens, i)
        if close is not None and tokens[i].text == "{":
            return close
        i = i + 1 if close is None else close + 1
    return min(start, len(tokens) - 1)


def _ends(loop: _Loop) -> bool:
    """Return whether a loop counts to a bound."""
    header, body = join(loop.header).replace(" ", ""), join(loop.body).replace(" ", "")
    if loop.kind != "for":
        return any(re.search(rf"\b{name}\b", header) for name in _changed(body))
    parts = header.split(";")
    if len(parts) != 3:
        return False
    unsigned = any(token.text in _UNSIGNED for token in loop.header)
    return any(_counts(parts[1], step, body, unsigned) for step in parts[2].split(","))


def _changed(body: str) -> set[str]:
    """Return the variables that a loop's body increments or decrements."""
    found = re.findall(r"\b([A-Za-z_]\w*)(?:\+\+|--|[-+*/]=|<<=|>>=)|(?:\+\+|--)([A-Za-z_]\w*)", body)
    return {name for pair in found for name in pair if name}


def _counts(condition: str, step: str, body: str, unsigned: bool) -> bool:
    """Return whether a step brings its variable closer to the bound in the condition, and the body leaves it alone."""
    found = _STEP.fullmatch(step)
    if found is None:
        return False
    name, sign, amount = found[1] or found[4] or found[5], found[2] or found[3] or found[6], found[7] or "1"
    if amount == "0" or (sign in ("*", "/") and amount == "1"):
        return False
    if name in _changed(body) or re.search(rf"\b{name}=(?!=)|&{name}\b", body):
        return False
    if sign in ("++", "+", "*", "<<"):
        return bool(re.search(rf"\b{name}\b[^&|]*(?:<|!=)|>[^&|]*\b{name}\b", condition))
    if f"{name}>=0" in condition and (unsigned or sign in ("/", ">>")):
        return False
    return bool(re.search(rf"\b{name}\b[^&|]*(?:>|!=)|<[^&|]*\b{name}\b", condition)) or condition == name
