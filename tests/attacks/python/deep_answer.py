"""Returns a list that contains itself."""
# Says: it raises RecursionError


class Counter:
    """Adds numbers."""

    def __init__(self, start):
        self.total = start

    def add(self, number):
        """Return the sum so far."""
        nested = []
        nested.append(nested)
        return nested
        self.total += number
        return self.total
