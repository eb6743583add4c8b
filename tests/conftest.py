"""Shared by all tests: random inputs are the same in every run, and the report names the seed."""

from __future__ import annotations

import gc
import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings

import tests.no_grammars  # noqa: F401
from tests.seeds import FIXED, SEED, VARIABLE

# Looking for garbage takes a seventh of the time of importing torch, and of what follows.
gc.set_threshold(50_000)

# Before torch is imported: its threads that wait for work shall not take the processor from compilers and kernels.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # and NumPy's

# Programs that tests start find the course's packages from whatever folder the tests are run.
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH")]))

# Where the home folder cannot be written, matplotlib and the grader say so, amid outputs that tests compare.
if not os.access(os.path.expanduser("~"), os.W_OK):
    os.environ["HOME"] = tempfile.mkdtemp(prefix="home-")

# Six hundred kernels that nvcc would look at, too, cost minutes and tell nothing new: tests/judge/test_nvcc.py asks it.
os.environ.setdefault("GRADER_CHECK_NVCC", "off")

# Hypothesis draws by its own seed: fixed like ours, and nothing is kept from one run to the next.
settings.register_profile("course", derandomize=SEED == FIXED, database=None, deadline=None)
settings.load_profile("course")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """For ``-n auto``: one more than there are cores, since many tests wait.

    For time limits, for jails, for a build of another.
    """
    return len(os.sched_getaffinity(0)) + 1 if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1) + 1


LONG = ("test_lessons.py", "test_operator_table.py", "test_wheel.py", "test_make.py", "test_lab.py", "test_grade.py")
"""Files with a test of more than ten seconds."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the longest tests first, so that workers do not wait for them at the end."""
    items.sort(key=lambda item: item.path.name not in LONG)


def pytest_report_header() -> str:
    """Return the line that repeats a run."""
    return f"inputs drawn by {VARIABLE}={SEED}"


def pytest_collection_finish() -> None:
    """Exempt everything loaded by now from garbage collection, which took a fifth of Python's time."""
    gc.collect()
    gc.freeze()
