"""An operation that sleeps for an hour."""
# Says: did not finish within 0.5 s and was stopped

import time


class Counter:
    """Adds numbers."""

    def __init__(self, start):
        self.total = start

    def add(self, number):
        """Return the sum so far."""
        time.sleep(3600)
        self.total += number
        return self.total
