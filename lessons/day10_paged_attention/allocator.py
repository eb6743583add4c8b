"""Allocator of the pages of a KV cache: a free list, a reference count for each page, and copy-on-write.

A sequence's tokens are stored in pages of ``page_size`` slots. Its *block table* lists these pages in order. Sequences
that begin alike share pages. All owners of a shared page may read it, but none may write to it: a sequence gets its
own copy before it writes.

Invariants:

1. Every page is either in the free list, once, or in at least one block table; never both, never neither.
2. The reference count of a page is the number of block tables that hold it, and no table holds a page twice.
3. A sequence of n tokens holds exactly ceil(n / page_size) pages.
4. A slot that ``append`` returns is in a page with one owner, and its slots are distinct.

``check`` verifies the first three; the tests call it after every step. An operation that fails changes nothing.
"""

from __future__ import annotations

from sequences import Appended, OutOfPages, Sequence


class BlockAllocator:
    """The pages of one KV cache and the sequences that hold them."""

    def __init__(self, pages: int, page_size: int) -> None:
        if pages < 0 or page_size < 1:
            raise ValueError(f"cannot make a cache of {pages} pages of {page_size} tokens")
        self.pages = pages
        self.page_size = page_size
        self.owners = [0] * pages
        self.sequences: dict[int, Sequence] = {}
        self._free = list(range(pages - 1, -1, -1))  # used as a stack
        self._next_id = 0

    @property
    def free_pages(self) -> int:
        """The number of free pages."""
        return len(self._free)

    def create(self) -> int:
        """Create a sequence without tokens and return its number."""
        number = self._next_id
        self._next_id += 1
        self.sequences[number] = Sequence()
        return number

    def pages_needed(self, number: int, tokens: int) -> int:
        """Return the number of free pages that an append of ``tokens`` tokens takes."""
        sequence = self.sequences[number]
        new = -(-(sequence.length + tokens) // self.page_size) - len(sequence.table)
        return new + (1 if tokens and self._writes_shared_page(sequence) else 0)

    def append(self, number: int, tokens: int = 1) -> Appended:
        """Allocate slots for new tokens. Raise OutOfPages, without a change, if too few pages are free."""
        if tokens < 0:
            raise ValueError(f"cannot append {tokens} tokens")
        sequence = self.sequences[number]
        needed = self.pages_needed(number, tokens)
        if needed > len(self._free):
            raise OutOfPages(f"{needed} pages are needed, {len(self._free)} are free")
        copy = None
        if tokens and self._writes_shared_page(sequence):
            shared, own = sequence.table[-1], self._take()
            self.owners[shared] -= 1  # the other owners keep the page
            sequence.table[-1] = own
            copy = (shared, own)
        slots = []
        for position in range(sequence.length, sequence.length + tokens):
            if position % self.page_size == 0:
                sequence.table.append(self._take())
            slots.append(sequence.table[-1] * self.page_size + position % self.page_size)
        sequence.length += tokens
        return Appended(slots, copy)

    def fork(self, number: int) -> int:
        """Create a second sequence with the same tokens and return its number. Both share all pages."""
        sequence = self.sequences[number]
        for page in sequence.table:
            self.owners[page] += 1
        twin = self.create()
        self.sequences[twin] = Sequence(list(sequence.table), sequence.length)
        return twin

    def free(self, number: int) -> None:
        """End a sequence, and free the pages that no other sequence holds."""
        if number not in self.sequences:
            raise KeyError(f"there is no sequence {number}: it was freed before, or never created")
        for page in self.sequences.pop(number).table:
            self.owners[page] -= 1
            if self.owners[page] == 0:
                self._free.append(page)

    def check(self) -> None:
        """Raise AssertionError if one of the invariants does not hold."""
        held = [0] * self.pages
        for number, sequence in self.sequences.items():
            assert len(set(sequence.table)) == len(sequence.table), f"sequence {number} holds a page twice"
            assert len(sequence.table) == -(-sequence.length // self.page_size), (
                f"sequence {number} has not ceil(length / page_size) pages"
            )
            for page in sequence.table:
                held[page] += 1
        assert held == self.owners, "a reference count is not the number of tables that hold the page"
        assert len(set(self._free)) == len(self._free), "a page is in the free list twice"
        unheld = {page for page, owners in enumerate(held) if owners == 0}
        assert unheld == set(self._free), "a page is neither held nor free, or both"

    def _take(self) -> int:
        page = self._free.pop()
        self.owners[page] = 1
        return page

    def _writes_shared_page(self, sequence: Sequence) -> bool:
        """Return whether the next token would go into a page with other owners."""
        return sequence.length % self.page_size != 0 and self.owners[sequence.table[-1]] > 1
