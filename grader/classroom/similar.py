"""Detection of nearly identical submissions, regardless of names, comments and whitespace.

A file becomes the set of its k-grams (k consecutive tokens), in which all names are equal. Code of the course is left
out: the skeleton, and the lessons' kernels and headers, from which students start. The similarity of two files is the
share of the smaller set that is also in the other. Adding code to a copy therefore does not lower the similarity. Two
files are not compared if one is more than twice as large as the other. Classes are small, so all k-grams are kept,
whereas large collections keep a sample of them (Schleimer, Wilkerson and Aiken, Winnowing: Local Algorithms for
Document Fingerprinting, 2003).

Short kernels are naturally similar, and students who talk to each other write similar code. A pair is a hint, never a
proof.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations, product
from pathlib import Path

from grader.course import Entry
from grader.course.manifest import Language
from grader.frontend.tokens import Source

K = 10
"""The number of tokens in a k-gram."""
LEAST = 0.8
LEAST_SIZE = 0.5
"""The minimum size of the smaller set relative to the larger. In a tiny set, a few common lines count too much."""
MOST = 20_000
"""The maximum number of k-grams per file, so that a large file does not fill the memory."""
FEWEST = 12
"""The minimum number of k-grams, without those of the skeleton, that a file needs to be compared."""


KGrams = frozenset[tuple[str, ...]]


@dataclass(frozen=True)
class Pair:
    """Two students with nearly identical files."""

    exercise: str
    first: str
    second: str
    similarity: float


_PYTHON = re.compile(r"#.*|(?P<name>[^\W\d]\w*)|\d+|[^\w\s]")
"""A comment or a token of Python. Strings become several tokens."""


def k_grams(text: str, language: Language = "cuda") -> KGrams:
    """Return a file's k-grams of tokens."""
    words = [word for word, _ in _words(text, language)]
    return frozenset(tuple(words[i : i + K]) for i in range(min(len(words) - K + 1, MOST)))


def given(entry: Entry) -> KGrams:
    """Return the k-grams of the exercise's skeleton and of the lessons' code, which do not count as similar."""
    files = [entry.skeleton, *(entry.root / "lessons").glob("*/*.cu*" if entry.language == "cuda" else "*/*.py")]
    return frozenset().union(*(_of_file(path, entry.language) for path in files))


@functools.lru_cache(maxsize=256)
def _of_file(path: Path, language: Language) -> KGrams:
    try:
        return k_grams(path.read_text(encoding="utf-8", errors="replace"), language)
    except OSError:
        return frozenset()


def similar(exercise: str, files: Mapping[str, KGrams], skeleton: KGrams = frozenset()) -> list[Pair]:
    """Return pairs of students above the limit, the most similar first. ``files``: k-grams of each file."""
    own: dict[KGrams, list[str]] = {}  # many students have the same file: compare each distinct one once
    for student, grams in sorted(files.items()):
        if len(rest := grams - skeleton) >= FEWEST:
            own.setdefault(rest, []).append(student)
    pairs = [Pair(exercise, one, two, 1.0) for same in own.values() for one, two in combinations(same, 2)]
    for (a, of_a), (b, of_b) in combinations(own.items(), 2):
        smaller = min(len(a), len(b))
        if smaller < LEAST_SIZE * max(len(a), len(b)):
            continue
        share = len(a & b) / smaller
        if share >= LEAST:
            for first, second in map(sorted, product(of_a, of_b)):
                pairs.append(Pair(exercise, first, second, round(share, 3)))
    return sorted(pairs, key=lambda pair: (-pair.similarity, pair.first, pair.second))


def groups(pairs: Iterable[Pair]) -> list[list[Pair]]:
    """Group the pairs of each exercise into connected groups, the largest first."""
    leader: dict[tuple[str, str], tuple[str, str]] = {}  # a disjoint-set forest of exercise and student

    def root(member: tuple[str, str]) -> tuple[str, str]:
        while leader.setdefault(member, member) != member:
            leader[member] = member = leader[leader[member]]
        return member

    listed = sorted(pairs, key=lambda pair: (pair.exercise, -pair.similarity, pair.first, pair.second))
    for pair in listed:
        leader[root((pair.exercise, pair.first))] = root((pair.exercise, pair.second))
    found: dict[tuple[str, str], list[Pair]] = {}
    for pair in listed:
        found.setdefault(root((pair.exercise, pair.first)), []).append(pair)
    return sorted(found.values(), key=lambda group: (-len(students(group)), -group[0].similarity))


def students(pairs: Iterable[Pair]) -> list[str]:
    """Return the students of the pairs, sorted."""
    return sorted({name for pair in pairs for name in (pair.first, pair.second)})


def common_lines(first: str, second: str, given: KGrams, language: Language = "cuda") -> tuple[set[int], set[int]]:
    """Return the 1-based numbers of the lines in each text that contain shared k-grams."""
    shared = (k_grams(first, language) & k_grams(second, language)) - given
    return _lines_of(first, shared, language), _lines_of(second, shared, language)


def _lines_of(text: str, grams: KGrams, language: Language) -> set[int]:
    words = _words(text, language)
    marked: set[int] = set()
    for i in range(len(words) - K + 1):
        if tuple(word for word, _ in words[i : i + K]) in grams:
            marked.update(line for _, line in words[i : i + K])
    return marked


def _words(text: str, language: Language) -> list[tuple[str, int]]:
    """Return the tokens in source order, in which all names are equal, with their lines."""
    if language == "python":
        return [
            ("name" if found["name"] else found[0], number)
            for number, line in enumerate(text.splitlines(), 1)
            for found in _PYTHON.finditer(line)
            if not found[0].startswith("#")
        ]
    source = Source(text)
    bodies = [token for macro in source.macros for token in macro.body]
    tokens = sorted([*source.tokens, *bodies], key=lambda token: token.start)
    return [("name" if token.kind == "word" else token.text, source.line(token.start)) for token in tokens]
