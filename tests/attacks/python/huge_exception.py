"""Raises an exception with a long message and a long name."""
# Says: it raises


class Counter:
    """Adds numbers."""

    def __init__(self, start):
        self.total = start

    def add(self, number):
        """Return the sum so far."""
        raise type("E" * 100_000, (Exception,), {})("x" * 10_000_000)
        self.total += number
        return self.total
