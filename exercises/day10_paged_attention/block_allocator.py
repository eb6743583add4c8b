"""The block allocator of day 10, for you to write: it allocates the pages of a KV cache.

Every page is either free or held by a sequence. A sequence of n tokens holds ceil(n / page_size) pages. Sequences that
begin with the same tokens may share pages. Before a sequence writes to a page that another sequence also holds, it gets
a copy of that page.

An operation that raises an exception changes nothing. It raises KeyError if no sequence has the given number: the
sequence was never created, or it was freed.
"""

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
    """(from, to): the shared page to copy before the tokens are written."""


class BlockAllocator:
    """The pages of one KV cache and the sequences that hold them."""

    def __init__(self, pages: int, page_size: int) -> None:
        self.page_size = page_size
        self.sequences: dict[int, Sequence] = {}
        # TODO: a free list, and a reference count for each page.

    @property
    def free_pages(self) -> int:
        """The number of free pages."""
        # TODO

    def table(self, number: int) -> list[int]:
        """Return the pages of a sequence, in order."""
        return list(self.sequences[number].table)

    def create(self) -> int:
        """Create a sequence without tokens and return its number; never use a number twice."""
        # TODO

    def append(self, number: int, tokens: int = 1) -> Appended:
        """Allocate slots for new tokens. If too few pages are free, raise OutOfPages and change nothing."""
        # TODO: count the pages that you need, with the one for a copy, before you change anything.

    def fork(self, number: int) -> int:
        """Create a second sequence that shares all pages of the first, and return its number."""
        # TODO

    def free(self, number: int) -> None:
        """End a sequence and release its pages."""
        # TODO
