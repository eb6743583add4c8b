"""The pins of constraints.txt work with every Python version that the course supports."""

from __future__ import annotations

import importlib.metadata
import platform
import re
import sys
import sysconfig
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
# The tested Python versions: the first and latest known patch releases, Debian 12's (3.11.2), and those at which a
# package's requirements change.
PYTHONS = (
    "3.11.0",
    "3.11.2",
    "3.11.4",
    "3.11.5",
    "3.11.15",
    "3.12.0",
    "3.12.13",
    "3.13.0",
    "3.13.12",
    "3.14.0",
    "3.14.1",
    "3.14.2",
)
LINES = [
    Requirement(line)
    for line in (ROOT / "constraints.txt").read_text().splitlines()
    if line and not line.startswith("#")
]


of_make = pytest.mark.skipif(
    Path(sys.prefix).resolve() != ROOT / ".venv", reason="this Python's packages were not installed by `make`"
)


def installed() -> dict[str, importlib.metadata.Distribution]:
    """Return the packages of this environment, without those that setuptools adds to sys.path."""
    places = [sysconfig.get_path("purelib"), sysconfig.get_path("platlib")]
    return {canonicalize_name(package.name): package for package in importlib.metadata.distributions(path=places)}


def applies(line: Requirement, python: str) -> bool:
    """Return whether a pin applies to a Python version."""
    here = {"python_full_version": python, "python_version": python.rpartition(".")[0]}
    return line.marker is None or line.marker.evaluate(here)


def pins_for(python: str) -> dict[str, str]:
    """Return each package's version for a Python version."""
    return {canonicalize_name(line.name): next(iter(line.specifier)).version for line in LINES if applies(line, python)}


@pytest.mark.parametrize("python", PYTHONS)
def test_each_package_has_one_version(python: str) -> None:
    names = {canonicalize_name(line.name) for line in LINES}
    pinned = [canonicalize_name(line.name) for line in LINES if applies(line, python)]
    assert sorted(pinned) == sorted(names)
    assert all(re.fullmatch(r"==[\w.]+", str(line.specifier)) for line in LINES)


@of_make
@pytest.mark.parametrize("python", PYTHONS)
def test_no_pin_requires_a_newer_python(python: str) -> None:
    """Check ``Requires-Python`` of the installed packages. Once, a pin needed 3.11.5, but Debian 12 has 3.11.2."""
    looked_at = 0
    packages = installed()
    for name, version in pins_for(python).items():
        package = packages.get(name)
        if package is None:
            continue  # uv is only installed if it installs torch
        if package.version.partition("+")[0] != version:
            continue  # the pin is for another Python version
        looked_at += 1
        supported = SpecifierSet(package.metadata.get("Requires-Python") or "")
        assert supported.contains(python), f"{name} {version} wants Python {supported}"
    assert looked_at > 100, "the environment is not the one that `make` sets up"


@of_make
def test_installed_versions_are_the_pinned_ones() -> None:
    packages = installed()
    wanted = {name: version for name, version in pins_for(platform.python_version()).items() if name in packages}
    assert {name: packages[name].version.partition("+")[0] for name in wanted} == wanted


def test_all_files_name_the_same_range_of_python_versions() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["requires-python"] == ">=3.11,<3.15"
    makefile = (ROOT / "Makefile").read_text()
    assert "(3, 11) <= sys.version_info[:2] <= (3, 14)" in makefile
    assert "python3 python3.14 python3.13 python3.12 python3.11;" in makefile
    assert "Python 3.11 to 3.14" in (ROOT / "README.md").read_text()
    assert "3.11.0 to 3.14" in (ROOT / "constraints.txt").read_text()
    assert {f"3.{minor}" for minor in range(11, 15)} == {python.rpartition(".")[0] for python in PYTHONS}
