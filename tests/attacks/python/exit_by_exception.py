"""Ends the process by SystemExit."""
# Says: add(2): it raises SystemExit at line 15: 0

import sys


class Counter:
    """Adds numbers."""

    def __init__(self, start):
        self.total = start

    def add(self, number):
        """Return the sum so far."""
        sys.exit(0)
        self.total += number
        return self.total
