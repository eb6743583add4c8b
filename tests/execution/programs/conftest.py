"""A fixture that builds the program of a test module."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.execution.programs.running import built


@pytest.fixture(scope="module")
def program(request: pytest.FixtureRequest) -> Path:
    """Return the program built from the module's FILE."""
    return built(request.module.FILE)
