"""The fake simulator of the runner's tests, also used by the tests of ``grader bench``."""

from __future__ import annotations

from tests.execution.runner.conftest import libraries

__all__ = ["libraries"]
