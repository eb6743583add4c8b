"""The block allocator of day 10, for you to write: it allocates the pages of a KV cache.

Every page is either free or held by a sequence. A sequence of n tokens holds ceil(n / page_size) pages. Sequences that
begin with the same tokens may share pages. Before a sequence writes to a page that another sequence also holds, it gets
a copy of that page.

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
        """Create a sequence without tokens and return its number; never use a number twice."""
        raise NotImplementedError  # TODO

    def append(self, number: int, tokens: int = 1) -> Appended:
        """Allocate slots for new tokens. If too few pages are free, raise OutOfPages and change nothing."""
        raise NotImplementedError  # TODO

    def fork(self, number: int) -> int:
        """Create a second sequence that shares all pages of the first, and return its number."""
        raise NotImplementedError  # TODO

    def free(self, number: int) -> None:
        """End a sequence and release its pages. Raise KeyError for a number that is not in use."""
        raise NotImplementedError  # TODO
