"""The stand-in simulator of the runner's tests, for the bench."""

from __future__ import annotations

from tests.execution.runner.conftest import libraries

__all__ = ["libraries"]
