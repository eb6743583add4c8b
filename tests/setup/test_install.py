"""The progress of an installation, and files that the set-up builds in advance."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

from grader.cli.install import compile_modules
from grader.setup import display
from grader.setup.installer import Installer
from grader.setup.state import Folder


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
        "a module with a syntax error must be skipped, because only its import should fail"
    )


@pytest.mark.parametrize("live", [False, True])
def test_the_number_of_installed_packages_is_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, live: bool
) -> None:
    monkeypatch.setattr(display, "_SECONDS_BETWEEN", 0)
    shown = display.Display()
    shown.live = live
    packages = tmp_path / ".venv" / "lib" / "python3.12" / "site-packages"

    def install(*names: str) -> None:
        for name in names:
            (packages / f"{name}-1.0.dist-info").mkdir(parents=True)
            (packages / f"{name}-1.0.dist-info" / "INSTALLER").touch()

    install("pip", "setuptools")  # they were there before
    installer = Installer(Folder(tmp_path), shown)
    lines = []
    names = [f"package{number}" for number in range(12)]
    installer._follow(f"Installing collected packages: {', '.join(names)}")
    for name in names:
        install(name)
        installer._follow(None)
        installer._follow(None)
        lines += capsys.readouterr().out.splitlines()
    if live:
        assert "installed 1 of 12 packages" in lines[1] and "installed 12 of 12 packages" in lines[-1]
    else:
        quarters = [f"  installed {number} of 12 packages" for number in (3, 6, 9, 12)]
        assert lines == ["  installing 12 packages", *quarters]
