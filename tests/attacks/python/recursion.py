"""Recurses without an end."""
# Says: it raises RecursionError


class Counter:
    """Adds numbers."""

    def __init__(self, start):
        self.total = start

    def add(self, number):
        """Return the sum so far."""
        return self.add(number)
        self.total += number
        return self.total
