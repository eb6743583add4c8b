"""What all tests share: what is drawn at random is the same in every run, and the report says by which seed."""

from __future__ import annotations

from hypothesis import settings

from tests.seeds import FIXED, SEED, VARIABLE

# Hypothesis draws by its own seed: fixed like ours, and nothing is kept from one run to the next.
settings.register_profile("course", derandomize=SEED == FIXED, database=None, deadline=None)
settings.load_profile("course")


def pytest_report_header() -> str:
    """The line to repeat a run by."""
    return f"inputs drawn by {VARIABLE}={SEED}"
