"""Submissions that are nearly the same, whatever their names, comments and blanks are.

A file becomes the set of its k-grams, k tokens in a row, every name counting as the same word; what stands in the skeleton
too does not count. Two files are as similar as their sets overlap (the Jaccard index).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations

from grader.source.tokens import Source

K = 10
"""Tokens of a k-gram."""
LEAST = 0.8
FEWEST = 12
"""k-grams that a file must have of its own to be compared at all."""


KGrams = frozenset[tuple[str, ...]]


@dataclass(frozen=True)
class Pair:
    """Two students with nearly the same file."""

    exercise: str
    first: str
    second: str
    similarity: float


def k_grams(text: str) -> KGrams:
    """A file's k-grams of tokens."""
    words = ["name" if token.kind == "word" else token.text for token in Source(text).tokens]
    return frozenset(tuple(words[i : i + K]) for i in range(len(words) - K + 1))


def similar(exercise: str, files: Mapping[str, KGrams], skeleton: KGrams = frozenset()) -> list[Pair]:
    """The pairs of students above the limit, the most similar first. ``files``: the k-grams of each student's file."""
    own = {student: grams - skeleton for student, grams in files.items() if len(grams - skeleton) >= FEWEST}
    pairs = []
    for (first, a), (second, b) in combinations(sorted(own.items()), 2):
        if min(len(a), len(b)) < LEAST * max(len(a), len(b)):
            continue
        share = len(a & b) / len(a | b)
        if share >= LEAST:
            pairs.append(Pair(exercise, first, second, round(share, 3)))
    return sorted(pairs, key=lambda pair: -pair.similarity)
