"""The seed of what tests draw. Learners get fresh inputs at each check; tests get the same ones in every run.

A test that passes today must pass tomorrow, so the seed is fixed. ``TEST_SEED=fresh`` draws one, and ``TEST_SEED=N``
draws again what a run that printed N drew: the way to look for cases that catch a mistake only now and then.
"""

from __future__ import annotations

import os
import secrets

import pytest

VARIABLE = "TEST_SEED"
FIXED = 20240229


def chosen(asked: str) -> int:
    """Return the seed for a value of the variable."""
    if asked == "fresh":
        return secrets.randbits(48)
    if not asked:
        return FIXED
    if not asked.isdecimal():
        raise pytest.UsageError(f"{VARIABLE} is {asked!r}: give a whole number from 0 on, or fresh")
    return int(asked)


SEED = chosen(os.environ.get(VARIABLE, ""))
os.environ[VARIABLE] = str(SEED)  # the workers of pytest-xdist inherit it: all draw the same
