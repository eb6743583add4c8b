"""A block allocator that keeps the set of owners of each page, and allocates the lowest free page from a heap."""

from __future__ import annotations

import heapq
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
        self.heap = list(range(pages))
        self.owners: list[set[int]] = [set() for _ in range(pages)]
        self.used: list[int] = []

    @property
    def free_pages(self) -> int:
        """The number of free pages."""
        return sum(not owners for owners in self.owners)

    def table(self, number: int) -> list[int]:
        """Return the pages of a sequence, in order."""
        return list(self.sequences[number].table)

    def create(self) -> int:
        """Create a sequence without tokens and return its number."""
        number = len(self.used)
        self.used.append(number)
        self.sequences[number] = Sequence()
        return number

    def append(self, number: int, tokens: int = 1) -> Appended:
        """Allocate slots for new tokens; undo everything if too few pages are free."""
        sequence = self.sequences[number]
        before, taken, slots, copy = Sequence(list(sequence.table), sequence.length), [], [], None

        def take() -> int:
            if not self.heap:
                raise OutOfPages("no page is free")
            taken.append(heapq.heappop(self.heap))
            self.owners[taken[-1]].add(number)
            return taken[-1]

        try:
            for _ in range(tokens):
                row = sequence.length % self.page_size
                if row == 0:
                    sequence.table.append(take())
                elif len(self.owners[sequence.table[-1]]) > 1:
                    shared = sequence.table[-1]
                    copy = (shared, take())
                    self.owners[shared].remove(number)
                    sequence.table[-1] = copy[1]
                slots.append(sequence.table[-1] * self.page_size + row)
                sequence.length += 1
        except OutOfPages:
            for page in taken:
                self.owners[page].clear()
                heapq.heappush(self.heap, page)
            for page in before.table:
                self.owners[page].add(number)
            self.sequences[number] = before
            raise
        return Appended(slots, copy)

    def fork(self, number: int) -> int:
        """Create a second sequence that shares all pages of the first."""
        first = self.sequences[number]
        twin = self.create()
        for page in first.table:
            self.owners[page].add(twin)
        self.sequences[twin] = Sequence(list(first.table), first.length)
        return twin

    def free(self, number: int) -> None:
        """End a sequence and release its pages."""
        for page in self.sequences.pop(number).table:
            self.owners[page].discard(number)
            if not self.owners[page]:
                heapq.heappush(self.heap, page)
