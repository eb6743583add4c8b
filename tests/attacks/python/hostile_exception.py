"""Raises an exception whose text cannot be made."""
# Says: it raises Hostile at line


class Hostile(Exception):
    """An exception that raises again."""

    def __str__(self):
        raise SystemExit(0)


class Counter:
    """Adds numbers."""

    def __init__(self, start):
        self.total = start

    def add(self, number):
        """Return the sum so far."""
        raise Hostile
        self.total += number
        return self.total
