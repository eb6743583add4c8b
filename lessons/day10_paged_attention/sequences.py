"""The records that a block allocator keeps of each sequence, shared by the lesson's allocator and yours."""

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
    """The work of the kernels for some new tokens."""

    slots: list[int]
    """Where each new token's key and value go: page * page_size + row."""
    copy: tuple[int, int] | None = None
    """(from, to): a shared page that must be copied before the tokens are written.

    At most the last one of the sequence.
    """
