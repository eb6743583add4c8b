"""Prints control characters."""
# Says: it returns None, not 12


class Counter:
    """Adds numbers."""

    def __init__(self, start):
        self.total = start

    def add(self, number):
        """Return the sum so far."""
        print("\x1b[31m\u202ered")
        return None
        self.total += number
        return self.total
