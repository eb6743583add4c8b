"""Uses all memory."""
# Says: it raises MemoryError


class Counter:
    """Adds numbers."""

    def __init__(self, start):
        self.total = start

    def add(self, number):
        """Return the sum so far."""
        kept = []
        while True:
            kept.append(bytearray(1 << 24))
        self.total += number
        return self.total
