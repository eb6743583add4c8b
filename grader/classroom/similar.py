"""Submissions that are nearly the same, whatever their names, comments and blanks are.

A file becomes the set of all runs of a few tokens in a row, every name counting as the same word; what stands in the
skeleton too does not count. Two files are as similar as their sets overlap.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations

from grader.source.tokens import Source

RUN = 10
"""Tokens in a row."""
LEAST = 0.8
FEWEST = 12
"""Runs that a file must have of its own to be compared at all."""


Runs = frozenset[tuple[str, ...]]


@dataclass(frozen=True)
class Pair:
    """Two students with nearly the same file."""

    exercise: str
    first: str
    second: str
    similarity: float


def runs_of(text: str) -> Runs:
    """A file's runs of tokens."""
    words = ["name" if token.kind == "word" else token.text for token in Source(text).tokens]
    return frozenset(tuple(words[i : i + RUN]) for i in range(len(words) - RUN + 1))


def similar(exercise: str, files: Mapping[str, Runs], skeleton: Runs = frozenset()) -> list[Pair]:
    """The pairs of students above the limit, the most similar first. ``files``: the runs of each student's file."""
    own = {student: runs - skeleton for student, runs in files.items() if len(runs - skeleton) >= FEWEST}
    pairs = []
    for (first, a), (second, b) in combinations(sorted(own.items()), 2):
        if min(len(a), len(b)) < LEAST * max(len(a), len(b)):
            continue
        share = len(a & b) / len(a | b)
        if share >= LEAST:
            pairs.append(Pair(exercise, first, second, round(share, 3)))
    return sorted(pairs, key=lambda pair: -pair.similarity)
