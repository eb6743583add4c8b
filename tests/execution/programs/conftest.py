"""A fixture that builds the program of a test module."""

from __future__ import annotations

from pathlib import Path

import pytest

from grader.execution.programs.build import Options, build_program
from grader.execution.programs.files import unit


@pytest.fixture(scope="module")
def program(request: pytest.FixtureRequest) -> Path:
    """Return the program built from the module's FILE."""
    return build_program([unit(request.module.FILE, (), ())], Options())
