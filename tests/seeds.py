"""The seed of random inputs. Learners get new inputs in each check; tests get the same inputs in every run.

The seed is fixed, because a test that passes today must pass tomorrow. ``TEST_SEED=fresh`` draws a new seed, and
``TEST_SEED=N`` repeats a run that printed N. Use them to look for cases that catch a mistake only sometimes.
"""

from __future__ import annotations

import os
import secrets

import pytest

VARIABLE = "TEST_SEED"
FIXED = 20240229


def chosen(asked: str) -> int:
    """Return the seed for a value of ``TEST_SEED``."""
    if asked == "fresh":
        return secrets.randbits(48)
    if not asked:
        return FIXED
    if not asked.isdecimal():
        raise pytest.UsageError(f"{VARIABLE} is {asked!r}: give a whole number from 0 on, or fresh")
    return int(asked)


SEED = chosen(os.environ.get(VARIABLE, ""))
os.environ[VARIABLE] = str(SEED)  # the workers of pytest-xdist inherit the seed
