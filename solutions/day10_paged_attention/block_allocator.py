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
        self.owners = [0] * pages
        self.free_list = list(range(pages))
        self.created = 0

    @property
    def free_pages(self) -> int:
        """The number of free pages."""
        return len(self.free_list)

    def table(self, number: int) -> list[int]:
        """Return the pages of a sequence, in order."""
        return list(self.sequences[number].table)

    def create(self) -> int:
        """Create a sequence without tokens and return its number; never use a number twice."""
        number = self.created
        self.created += 1
        self.sequences[number] = Sequence()
        return number

    def append(self, number: int, tokens: int = 1) -> Appended:
        """Allocate slots for new tokens. If too few pages are free, raise OutOfPages and change nothing."""
        sequence = self.sequences[number]
        row = sequence.length % self.page_size
        shared = tokens > 0 and row > 0 and self.owners[sequence.table[-1]] > 1
        needed = -(-(sequence.length + tokens) // self.page_size) - len(sequence.table) + shared
        if needed > len(self.free_list):
            raise OutOfPages(f"{needed} pages are needed, {len(self.free_list)} are free")
        copy = None
        if shared:
            copy = (sequence.table[-1], self._take())
            self.owners[copy[0]] -= 1
            sequence.table[-1] = copy[1]
        slots = []
        for position in range(sequence.length, sequence.length + tokens):
            if position == len(sequence.table) * self.page_size:
                sequence.table.append(self._take())
            slots.append(sequence.table[-1] * self.page_size + position % self.page_size)
        sequence.length += tokens
        return Appended(slots, copy)

    def fork(self, number: int) -> int:
        """Create a second sequence that shares all pages of the first, and return its number."""
        first = self.sequences[number]
        for page in first.table:
            self.owners[page] += 1
        twin = self.create()
        self.sequences[twin] = Sequence(list(first.table), first.length)
        return twin

    def free(self, number: int) -> None:
        """End a sequence and release its pages."""
        for page in self.sequences.pop(number).table:
            self.owners[page] -= 1
            if self.owners[page] == 0:
                self.free_list.append(page)

    def _take(self) -> int:
        """Allocate a free page."""
        page = self.free_list.pop()
        self.owners[page] = 1
        return page
