"""Sparsity patterns as data: the keys that each query sees, as lists in CSR form (offsets and indices).

``csr_attention`` runs any pattern. ``Pattern.blocks`` rounds a pattern up to a list of blocks for ``block_sparse``, in
which the queries of a block share the tiles of keys.

All builders take one length as the number of queries and keys. They return ascending, distinct keys. If ``causal`` is
true, query i sees no key after i.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Pattern:
    """A pattern: query i sees the keys ``indices[offsets[i]]`` up to ``indices[offsets[i + 1] - 1]``."""

    offsets: torch.Tensor
    indices: torch.Tensor
    keys: int

    @property
    def queries(self) -> int:
        """The number of queries."""
        return len(self.offsets) - 1

    @property
    def entries(self) -> int:
        """The number of (query, key) pairs."""
        return len(self.indices)

    @property
    def density(self) -> float:
        """The share of all pairs that exist."""
        return self.entries / max(self.queries * self.keys, 1)

    def row(self, query: int) -> torch.Tensor:
        """Return the keys of one query."""
        return self.indices[self.offsets[query] : self.offsets[query + 1]]

    def mask(self) -> torch.Tensor:
        """Return the pattern as a dense boolean mask, for pictures and references."""
        mask = torch.zeros(self.queries, self.keys, dtype=torch.bool)
        rows = torch.repeat_interleave(torch.arange(self.queries), self.offsets.diff().long())
        mask[rows, self.indices.long()] = True
        return mask

    def __or__(self, other: Pattern) -> Pattern:
        """Return the union of two patterns."""
        return from_mask(self.mask() | other.mask())

    def __and__(self, other: Pattern) -> Pattern:
        """Return the intersection of two patterns."""
        return from_mask(self.mask() & other.mask())

    def blocks(self, block: int) -> Pattern:
        """Return the blocks of block x block with at least one pair, as a pattern over blocks for ``block_sparse``."""
        mask = self.mask()
        down, across = -(-self.queries // block), -(-self.keys // block)
        padded = torch.zeros(down * block, across * block, dtype=torch.bool)
        padded[: self.queries, : self.keys] = mask
        return from_mask(padded.reshape(down, block, across, block).any(dim=3).any(dim=1))


def from_lists(lists: Iterable[Iterable[int]], keys: int) -> Pattern:
    """Build a pattern from one list of keys per query; sort the keys, drop duplicates, and refuse invalid keys."""
    rows = [sorted(set(row)) for row in lists]
    for query, row in enumerate(rows):
        for key in row:
            if not 0 <= key < keys:
                raise ValueError(f"query {query} lists key {key}, and there are {keys} keys")
    offsets = torch.tensor([0, *(len(row) for row in rows)]).cumsum(0)
    return Pattern(offsets.int(), torch.tensor([key for row in rows for key in row], dtype=torch.int32), keys)


def from_mask(mask: torch.Tensor) -> Pattern:
    """Build a pattern from a dense boolean mask."""
    offsets = torch.cat([torch.zeros(1, dtype=torch.long), mask.sum(dim=1).cumsum(0)])
    return Pattern(offsets.int(), mask.nonzero()[:, 1].int(), mask.shape[1])


def _distance(length: int) -> torch.Tensor:
    """Return [length, length]: the distance from query i back to key j."""
    position = torch.arange(length)
    return position[:, None] - position[None]


def _ordered(mask: torch.Tensor, causal: bool) -> Pattern:
    return from_mask(mask & (_distance(len(mask)) >= 0) if causal else mask)


def dense(length: int, causal: bool = True) -> Pattern:
    """Build the pattern in which every query sees every key."""
    return _ordered(torch.ones(length, length, dtype=torch.bool), causal)


def sliding_window(length: int, window: int, causal: bool = True) -> Pattern:
    """Build a window of ``window`` keys that ends with the query's own; without ``causal``, also as many later keys."""
    return _ordered(_distance(length).abs() < window, causal)


def dilated(length: int, window: int, step: int, causal: bool = True) -> Pattern:
    """Build a dilated window: ``window`` keys, every ``step``-th of a window that is ``step`` times as long."""
    distance = _distance(length)
    return _ordered((distance.abs() < window * step) & (distance % step == 0), causal)


def global_keys(length: int, count: int, causal: bool = True) -> Pattern:
    """Build global keys: all queries see the first ``count`` keys, and the first ``count`` queries see all keys."""
    mask = torch.zeros(length, length, dtype=torch.bool)
    mask[:count] = True
    mask[:, :count] = True
    return _ordered(mask, causal)


def random_keys(length: int, count: int, seed: int, causal: bool = True) -> Pattern:
    """Draw ``count`` random keys for each query; fewer if fewer are allowed."""
    generator = torch.Generator().manual_seed(seed)
    lists = []
    for query in range(length):
        allowed = query + 1 if causal else length
        lists.append(torch.randperm(allowed, generator=generator)[:count].tolist())
    return from_lists(lists, length)


def hierarchical(length: int, window: int, causal: bool = True) -> Pattern:
    """Build the ``window`` nearest keys, every 2nd of the next ``window``, every 4th of the next 2 ``window``, ...

    Each ring is twice as wide and half as dense as the previous one: window / 2 keys each, so O(window log N) in all.
    """
    distance = _distance(length).abs()
    ring = torch.where(distance < window, 0, 1 + torch.floor(torch.log2((distance / window).clamp(min=1))).long())
    return _ordered(torch.arange(length)[None] % 2**ring == 0, causal)
