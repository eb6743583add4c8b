"""What a block allocator keeps of each sequence, and what it answers: the lesson's and the one that you write share it."""

from __future__ import annotations

from dataclasses import dataclass, field


class OutOfPages(Exception):
    """There are not enough free pages: wait, or take a sequence's pages away."""


@dataclass
class Sequence:
    """One sequence's share of the cache."""

    table: list[int] = field(default_factory=list)
    length: int = 0


@dataclass(frozen=True)
class Appended:
    """What the kernels must do for some new tokens."""

    slots: list[int]
    """Where each new token's key and value go: page * page_size + row."""
    copy: tuple[int, int] | None = None
    """(from, to): a shared page that must be copied before the tokens are written; at most the last one of the sequence."""
