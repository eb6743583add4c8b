"""Prints without an end."""
# Says: it printed more than 16 MB


class Counter:
    """Adds numbers."""

    def __init__(self, start):
        self.total = start

    def add(self, number):
        """Return the sum so far."""
        while True:
            print("x" * 100_000)
        self.total += number
        return self.total
