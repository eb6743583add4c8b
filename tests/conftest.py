"""Settings for all tests. Random inputs are the same in every run, and the report names the seed."""

from __future__ import annotations

import gc
import os
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

import tests.no_grammars  # noqa: F401
from tests.seeds import FIXED, SEED, VARIABLE

# With default thresholds, garbage collection takes a seventh of the time of importing torch.
gc.set_threshold(50_000)

# Idle threads of torch sleep instead of spinning, which leaves the cores to compilers. Set before torch is imported.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # one thread for NumPy, for the same reason

# Programs that tests start can import the course's packages from any folder.
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH")]))

# If the home folder is read-only, matplotlib and the grader print warnings, which would change compared outputs.
if not os.access(os.path.expanduser("~"), os.W_OK):
    os.environ["HOME"] = tempfile.mkdtemp(prefix="home-")

# Compiling 600 kernels with nvcc would take minutes and test nothing new. tests/judge/test_nvcc.py tests nvcc.
os.environ.setdefault("GRADER_CHECK_NVCC", "off")

# Hypothesis draws from its own seed. Fix that seed, too, and store no examples between runs. Drawing may be slow.
settings.register_profile(
    "course",
    derandomize=SEED == FIXED,
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("course")


@pytest.fixture(autouse=True)
def draws_begin_anew(request: pytest.FixtureRequest) -> None:
    """Seed torch and the generator ``RNG`` of the test's module, so that no draw depends on earlier tests."""
    generator = getattr(sys.modules.get("torch"), "default_generator", None)  # absent while a thread imports torch
    if generator is not None:
        generator.manual_seed(SEED)
    if hasattr(request.module, "RNG"):
        request.module.RNG = sys.modules["numpy"].random.default_rng(SEED)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Return the number of workers for ``-n auto``: one more than the number of cores.

    Many tests wait for time limits, jails or builds.
    """
    return len(os.sched_getaffinity(0)) + 1 if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1) + 1


LONG = ("test_lessons.py", "test_operator_table.py", "test_wheel.py", "test_make.py", "test_lab.py", "test_grade.py")
"""Files with a test of more than ten seconds."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the longest tests first, so that workers do not wait for them at the end."""
    items.sort(key=lambda item: item.path.name not in LONG)


def pytest_report_header() -> str:
    """Return a line for the header that names the seed of this run."""
    return f"inputs drawn by {VARIABLE}={SEED}"


def pytest_collection_finish() -> None:
    """Exclude all objects that exist so far from garbage collection, which took a fifth of Python's time."""
    gc.collect()
    gc.freeze()
