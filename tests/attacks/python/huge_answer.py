"""Returns a list of two million elements."""
# Says: it returns list of 2000000 elements, not 12


class Counter:
    """Adds numbers."""

    def __init__(self, start):
        self.total = start

    def add(self, number):
        """Return the sum so far."""
        return [0] * 2_000_000
        self.total += number
        return self.total
