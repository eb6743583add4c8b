"""A block allocator whose free pages are the bits of one integer; owners of a page are counted in the tables."""

from __future__ import annotations

from collections import Counter
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
        self.free_bits = (1 << pages) - 1
        self.next = 100

    @property
    def free_pages(self) -> int:
        """The number of free pages."""
        return self.free_bits.bit_count()

    def table(self, number: int) -> list[int]:
        """Return the pages of a sequence, in order."""
        return self.sequences[number].table[:]

    def create(self) -> int:
        """Create a sequence without tokens and return its number."""
        self.next -= 1
        self.sequences[self.next] = Sequence()
        return self.next

    def append(self, number: int, tokens: int = 1) -> Appended:
        """Allocate slots for new tokens."""
        sequence = self.sequences[number]
        table, size = list(sequence.table), self.page_size
        holders = Counter(page for other in self.sequences.values() for page in other.table)
        moved = tokens > 0 and sequence.length % size > 0 and holders[table[-1]] > 1
        new = -(-(sequence.length + tokens) // size) - len(table) + moved
        if new > self.free_pages:
            raise OutOfPages(f"{new} pages are needed")
        bits, taken = self.free_bits, []
        for _ in range(new):
            taken.append((bits & -bits).bit_length() - 1)  # the lowest bit
            bits &= bits - 1
        copy = (table.pop(), taken[0]) if moved else None
        table += taken
        places = range(sequence.length, sequence.length + tokens)
        self.free_bits, sequence.table, sequence.length = bits, table, sequence.length + tokens
        return Appended([table[at // size] * size + at % size for at in places], copy)

    def fork(self, number: int) -> int:
        """Create a second sequence that shares all pages of the first."""
        first = self.sequences[number]
        twin = self.create()
        self.sequences[twin] = Sequence(first.table[:], first.length)
        return twin

    def free(self, number: int) -> None:
        """End a sequence and release its pages."""
        ended = self.sequences.pop(number)
        held = {page for other in self.sequences.values() for page in other.table}
        for page in set(ended.table) - held:
            self.free_bits |= 1 << page
