"""Deletes the file of another student."""
# Says: the sandbox allows no processes, no threads, no network, and no files

import os


class Counter:
    """Adds numbers."""

    def __init__(self, start):
        self.total = start

    def add(self, number):
        """Return the sum so far."""
        os.unlink("@OTHER@")
        self.total += number
        return self.total
