"""Allocates all memory."""
# Says: it raises MemoryError


class Counter:
    """Adds numbers."""

    def __init__(self, start):
        self.total = start

    def add(self, number):
        """Return the sum so far."""
        kept = []
        while True:
            kept.append(bytes(1 << 26))
        self.total += number
        return self.total
