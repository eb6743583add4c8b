"""Finds the plain read before a loop around ``atomicCAS``, as in NVIDIA's programming guide.

The loop looks like this:

    int old = *address, assumed;
    do {
        assumed = old;
        old = atomicCAS(address, assumed, f(assumed));
    } while (assumed != old);

The read ``*address`` in the first line races with the atomic operations of other threads. The race is benign: if the
value is stale, the exchange fails and returns the current value. The front end therefore turns this read into a
volatile read, which the simulator does not report as a race.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from grader.frontend.tokens import Token, closing, split_commas

FIRST_LOOK = "::sim::first_look("
_FARTHEST = 200
"""The largest distance, in tokens, between the read and ``atomicCAS``."""


def first_looks(tokens: Sequence[Token]) -> Iterator[tuple[int, int, str]]:
    """Yield the start and end of each plain read before an ``atomicCAS`` loop, and the text to insert at its start."""
    found: set[int] = set()
    for i, token in enumerate(tokens):
        if token.text != "atomicCAS" or i + 1 >= len(tokens) or tokens[i + 1].text != "(":
            continue
        close = closing(tokens, i + 1)
        arguments = split_commas(tokens[i + 2 : close]) if close is not None else []
        if len(arguments) != 3:
            continue
        for first, last, replaced in _reads(tokens, i, [t.text for t in arguments[0]]):
            if first not in found:
                found.add(first)
                start = tokens[first].start
                yield start, tokens[last].end, FIRST_LOOK + ("" if replaced else "&")


def _reads(tokens: Sequence[Token], exchange: int, address: list[str]) -> Iterator[tuple[int, int, bool]]:
    """Yield each read before an exchange at ``address``: its first and last token, and whether it begins with ``*``.

    The read is ``*p`` if the address is ``p``, or ``x[i]`` if the address is ``&x[i]``.
    """
    written = [address]
    if address[0] == "(" and ")" in address:
        written.append(address[address.index(")") + 1 :])  # the address without a cast before it
    forms: list[tuple[list[str], bool]] = []
    for each in filter(None, written):
        forms.append((each[1:], False) if each[0] == "&" else (["*", *each], True))
    for k in range(exchange - 1, max(0, exchange - _FARTHEST), -1):
        if tokens[k].text in ("__device__", "__global__"):
            return
        if tokens[k].text != "=":
            continue
        converted = "_as_" in tokens[k + 1].text and tokens[k + 2].text == "("  # __double_as_longlong(*address)
        start, ends = (k + 3, (")",)) if converted else (k + 1, (";", ","))
        for form, replaced in forms:
            end = start + len(form)
            if end < exchange and [t.text for t in tokens[start:end]] == form and tokens[end].text in ends:
                yield start, end - 1, replaced
