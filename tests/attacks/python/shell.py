"""An operation that becomes a shell."""
# Says: the sandbox allows no processes

import os


class Counter:
    """Adds numbers."""

    def __init__(self, start):
        self.total = start

    def add(self, number):
        """Return the sum so far."""
        os.execv("/bin/sh", ["sh", "-c", "echo hello"])
        self.total += number
        return self.total
