"""The block allocator of day 10, to be written: it hands out the pages of a KV cache.

At any time every page is free or held, never both and never neither; a sequence of n tokens holds ceil(n / page_size)
pages; sequences that begin alike share pages, and nobody writes to a page that another one holds too: who wants to gets
a copy of his own first.

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
        # TODO: a free list, and for each page how many sequences hold it.

    @property
    def free_pages(self) -> int:
        """How many pages nobody holds."""
        raise NotImplementedError  # TODO

    def create(self) -> int:
        """Create a sequence without tokens; return its number, which no sequence had before."""
        raise NotImplementedError  # TODO

    def append(self, number: int, tokens: int = 1) -> Appended:
        """Make room for new tokens. Raises OutOfPages where there are too few free pages, and then nothing has changed."""  # noqa: E501
        raise NotImplementedError  # TODO

    def fork(self, number: int) -> int:
        """Create a second sequence with the same tokens so far; this takes no page."""
        raise NotImplementedError  # TODO

    def free(self, number: int) -> None:
        """End a sequence. Raise KeyError for a number that is not in use."""
        raise NotImplementedError  # TODO
