"""Files that the set-up builds in advance."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

from grader.cli.install import compile_modules


def test_bytecode_is_written_although_python_is_told_not_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    inner = tmp_path / "package" / "inner"
    inner.mkdir(parents=True)
    good, bad = inner / "good.py", inner / "bad.py"
    good.write_text("answer = 42\n")
    bad.write_text("answer = \n")
    compile_modules(tmp_path / "package")
    assert Path(importlib.util.cache_from_source(str(good))).is_file()
    assert not Path(importlib.util.cache_from_source(str(bad))).exists(), (
        "it is an error where it is imported, not here"
    )
