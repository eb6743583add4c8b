"""Opens a connection."""
# Says: the sandbox allows no processes, no threads, no network, and no files

import socket


class Counter:
    """Adds numbers."""

    def __init__(self, start):
        self.total = start

    def add(self, number):
        """Return the sum so far."""
        socket.socket(socket.AF_INET).connect(("127.0.0.1", 9))
        self.total += number
        return self.total
