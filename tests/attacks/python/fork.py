"""An operation that starts a process."""
# Says: PermissionError at line 15: [Errno 1] Operation not permitted (the sandbox allows no processes

import os


class Counter:
    """Adds numbers."""

    def __init__(self, start):
        self.total = start

    def add(self, number):
        """Return the sum so far."""
        os.fork()
        self.total += number
        return self.total
