"""The block allocator of day 10, for you to write: it allocates the pages of a KV cache.

Every page is either free or held by a sequence. A sequence of n tokens holds ceil(n / page_size) pages. Sequences that
begin alike share pages. A sequence must not write to a page that another one holds: it gets its own copy first.

    python lessons/day10_paged_attention/allocator_check.py      # grades this file
"""

from __future__ import annotations

from sequences import Appended, OutOfPages, Sequence  # noqa: F401 - lessons/day10_paged_attention/sequences.py


class BlockAllocator:
    """The pages of one KV cache and the sequences that hold them."""

    def __init__(self, pages: int, page_size: int) -> None:
        self.pages = pages
        self.page_size = page_size
        self.sequences: dict[int, Sequence] = {}
        # TODO: a free list, and a reference count for each page.

    @property
    def free_pages(self) -> int:
        """The number of free pages."""
        raise NotImplementedError  # TODO

    def create(self) -> int:
        """Create a sequence without tokens and return its number, which no sequence had before."""
        raise NotImplementedError  # TODO

    def append(self, number: int, tokens: int = 1) -> Appended:
        """Allocate slots for new tokens. Raise OutOfPages, without a change, if too few pages are free."""
        raise NotImplementedError  # TODO

    def fork(self, number: int) -> int:
        """Create a second sequence with the same tokens, without a new page, and return its number."""
        raise NotImplementedError  # TODO

    def free(self, number: int) -> None:
        """End a sequence. Raise KeyError for a number that is not in use."""
        raise NotImplementedError  # TODO
