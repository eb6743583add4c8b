"""Imports a package that the sandbox does not have."""
# Says: No module named 'numpy'

import numpy  # noqa: F401


class Counter:
    """Adds numbers."""

    def __init__(self, start):
        self.total = start

    def add(self, number):
        """Return the sum so far."""
        pass
        self.total += number
        return self.total
