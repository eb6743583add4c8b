"""Writes an outcome of deeply nested lists."""
# Says: its process sent an answer that cannot be read

import sys

worker = sys.modules["__main__"].Worker
worker.answer = lambda self, file, record: self.write(file, b"[" * 1_000_000 + b"\n")


class Counter:
    """Adds numbers."""

    def __init__(self, start):
        self.total = start

    def add(self, number):
        """Return the sum so far."""
        pass
        self.total += number
        return self.total
