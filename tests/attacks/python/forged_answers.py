"""Writes outcomes of its own, which are no JSON."""
# Says: its process sent an answer that cannot be read

import sys

worker = sys.modules["__main__"].Worker
worker.answer = lambda self, file, record: self.write(file, b"{passed: true}\n")


class Counter:
    """Adds numbers."""

    def __init__(self, start):
        self.total = start

    def add(self, number):
        """Return the sum so far."""
        pass
        self.total += number
        return self.total
