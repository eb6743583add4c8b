"""Returns an integer of a million digits."""
# Says: it returns int, not 12


class Counter:
    """Adds numbers."""

    def __init__(self, start):
        self.total = start

    def add(self, number):
        """Return the sum so far."""
        return 1 << 4_000_000
        self.total += number
        return self.total
