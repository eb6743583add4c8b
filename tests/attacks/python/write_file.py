"""Writes to the folder of the submissions."""
# Says: the sandbox allows no processes, no threads, no network, and no files


class Counter:
    """Adds numbers."""

    def __init__(self, start):
        self.total = start

    def add(self, number):
        """Return the sum so far."""
        with open("@FOLDER@/written", "w") as file:
            file.write("written")
        self.total += number
        return self.total
