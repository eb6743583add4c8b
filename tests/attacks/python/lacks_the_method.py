"""Defines a class without its method."""
# Says: counter.py does not define Counter.add


class Counter:
    """Nothing."""
