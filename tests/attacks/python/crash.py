"""Reads address 0."""
# Says: it crashed: an access to memory that it does not own (SIGSEGV)

import ctypes


class Counter:
    """Adds numbers."""

    def __init__(self, start):
        self.total = start

    def add(self, number):
        """Return the sum so far."""
        ctypes.string_at(0)
        self.total += number
        return self.total
