"""Ends the process while it is imported."""
# Says: Importing counter.py fails: it ended the process with exit code 0

import os

os._exit(0)


class Counter:
    """Adds numbers."""

    def __init__(self, start):
        self.total = start

    def add(self, number):
        """Return the sum so far."""
        pass
        self.total += number
        return self.total
