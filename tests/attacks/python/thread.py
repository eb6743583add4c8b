"""An operation that starts a thread."""
# Says: the sandbox allows no processes, no threads

import _thread


class Counter:
    """Adds numbers."""

    def __init__(self, start):
        self.total = start

    def add(self, number):
        """Return the sum so far."""
        _thread.start_new_thread(print, ())
        self.total += number
        return self.total
