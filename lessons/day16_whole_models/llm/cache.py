"""The KV cache of a whole model, in the pages of day 10: one allocator for all layers.

Every layer has its own cache [pages, kv_heads, page_size, head_dim], and all layers share the block tables: page 7 of a
sequence is page 7 in each of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from llm.config import Config
from llm.other_days import day

PAGE_SIZE = 16
_allocator = day("day10_paged_attention", "allocator")
OutOfPages = _allocator.OutOfPages


@dataclass
class Batch:
    """The new tokens of some sequences, concatenated, and the places of the sequences' keys in the cache."""

    ids: Tensor
    """i64 [tokens]: the id of each token."""
    positions: Tensor
    """i32 [tokens]: the position of each token in its own text."""
    slots: Tensor
    """i64 [tokens]: the slot of each token's key and value."""
    block_tables: Tensor
    """i32 [sequences, max_pages]: the pages of each sequence, in order."""
    lengths: Tensor
    """i32 [sequences]: number of keys, including the new ones."""
    query_starts: Tensor
    """i32 [sequences + 1]: sequence b has the tokens query_starts[b] ... query_starts[b + 1] - 1."""
    last: Tensor
    """i64 [sequences]: index of the last token of each sequence."""
    max_queries: int
    """The largest number of new tokens of a sequence."""
    one_query_each: bool
    all_new: bool
    """True if all sequences were empty before: the new keys are all keys."""


class PagedCache:
    """The keys and values of all layers for some sequences."""

    def __init__(
        self,
        config: Config,
        tokens: int,
        dtype: torch.dtype = torch.float32,
        device: str = "cpu",
        page_size: int = PAGE_SIZE,
    ) -> None:
        pages = -(-tokens // page_size)
        shape = config.layers, pages, config.kv_heads, page_size, config.head_dim
        self.k = torch.zeros(shape, dtype=dtype, device=device)
        self.v = torch.zeros(shape, dtype=dtype, device=device)
        self.allocator = _allocator.BlockAllocator(pages, page_size)

    @property
    def nbytes(self) -> int:
        """Return the size of all keys and values in bytes."""
        return self.k.nbytes + self.v.nbytes

    def create(self) -> int:
        """Create an empty sequence and return its number."""
        return self.allocator.create()

    def fork(self, number: int) -> int:
        """Create a sequence with all tokens of another one, sharing its pages; return its number."""
        return self.allocator.fork(number)

    def free(self, number: int) -> None:
        """End a sequence and free its pages."""
        self.allocator.free(number)

    def append(self, texts: dict[int, list[int]]) -> Batch:
        """Allocate room for new tokens of some sequences. Raise OutOfPages, with all sequences unchanged."""
        needed = sum(self.allocator.pages_needed(number, len(ids)) for number, ids in texts.items())
        if needed > self.allocator.free_pages:
            raise OutOfPages(f"{needed} pages are needed, {self.allocator.free_pages} are free")
        positions: list[int] = []
        slots: list[int] = []
        starts = [0]
        for number, ids in texts.items():
            before = self.allocator.sequences[number].length
            appended = self.allocator.append(number, len(ids))
            if appended.copy is not None:  # a page shared with other sequences: this sequence gets a copy
                shared, own = appended.copy
                self.k[:, own] = self.k[:, shared]
                self.v[:, own] = self.v[:, shared]
            slots += appended.slots
            positions += range(before, before + len(ids))
            starts.append(len(positions))
        held = [self.allocator.sequences[number] for number in texts]
        most = max((len(sequence.table) for sequence in held), default=0)
        tables = [[*sequence.table, *[-1] * (most - len(sequence.table))] for sequence in held]

        def tensor(values: list[int] | list[list[int]], dtype: torch.dtype) -> Tensor:
            return torch.tensor(values, dtype=dtype, device=self.k.device)

        counts = [len(ids) for ids in texts.values()]
        return Batch(
            ids=tensor([token for ids in texts.values() for token in ids], torch.int64),
            positions=tensor(positions, torch.int32),
            slots=tensor(slots, torch.int64),
            block_tables=tensor(tables, torch.int32),
            lengths=tensor([sequence.length for sequence in held], torch.int32),
            query_starts=tensor(starts, torch.int32),
            last=tensor([start - 1 for start in starts[1:]], torch.int64),
            max_queries=max(counts, default=0),
            one_query_each=all(count == 1 for count in counts),
            all_new=all(sequence.length == count for sequence, count in zip(held, counts, strict=True)),
        )
