"""Operations that each stay below the time limit, but not together."""
# Says: together they took more than 0.5 s of processor time

import time


class Counter:
    """Adds numbers."""

    def __init__(self, start):
        self.total = start

    def add(self, number):
        """Return the sum so far."""
        end = time.process_time() + 0.015
        while time.process_time() < end:
            pass
        self.total += number
        return self.total
