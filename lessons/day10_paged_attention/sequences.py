"""The types that the lesson's block allocator and yours share: a sequence's table, and the result of an append."""

from __future__ import annotations

from dataclasses import dataclass, field


class OutOfPages(Exception):
    """An error: there are not enough free pages. Wait, or preempt a sequence."""


@dataclass
class Sequence:
    """A sequence: its pages, in order, and its number of tokens."""

    table: list[int] = field(default_factory=list)
    length: int = 0


@dataclass(frozen=True)
class Appended:
    """The result of an append: the slots to write, and a page to copy before."""

    slots: list[int]
    """The slot of each new token's key and value: page * page_size + row."""
    copy: tuple[int, int] | None = None
    """(from, to): the shared page to copy before the tokens are written, always the last page of the sequence."""
