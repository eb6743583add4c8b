"""Defines something else under the name."""
# Says: counter.py does not define Counter

Counter = 12
