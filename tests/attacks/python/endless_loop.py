"""An operation that never returns."""
# Says: add(2): it did not finish within 0.5 s and was stopped


class Counter:
    """Adds numbers."""

    def __init__(self, start):
        self.total = start

    def add(self, number):
        """Return the sum so far."""
        while True:
            pass
        self.total += number
        return self.total
