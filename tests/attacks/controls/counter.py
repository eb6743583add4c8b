"""A correct file that uses much of the standard library."""

from __future__ import annotations

import collections
import dataclasses
import heapq
import itertools
import random


@dataclasses.dataclass
class Counter:
    """Adds numbers."""

    start: int
    numbers: list[int] = dataclasses.field(default_factory=list)

    def add(self, number: int) -> int:
        """Return the sum so far."""
        heapq.heappush(self.numbers, number + random.randint(0, 0))
        print("added", number)
        return self.start + sum(itertools.chain(collections.deque(self.numbers)))
