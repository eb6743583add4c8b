"""Wheels for tests without a network: pip and setuptools, packed from the installed ones, and empty packages."""

from __future__ import annotations

import importlib.metadata
import zipfile
from pathlib import Path


def repack(name: str, folder: Path) -> str:
    """Write a wheel of an installed package and return its version."""
    package = importlib.metadata.distribution(name)
    with zipfile.ZipFile(folder / f"{name}-{package.version}-py3-none-any.whl", "w") as wheel:
        for file in package.files or []:
            inside = ".." not in file.parts and "__pycache__" not in file.parts
            if inside and file.name not in ("INSTALLER", "REQUESTED", "direct_url.json"):
                wheel.write(file.locate(), str(file))
    return package.version


def write_empty(name: str, version: str, folder: Path) -> None:
    """Write a wheel of a package that contains only its version."""
    info = f"{name}-{version}.dist-info"
    contents = {
        f"{name}/__init__.py": f"__version__ = '{version}'\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as wheel:
        for path, text in contents.items():
            wheel.writestr(path, text)
        wheel.writestr(f"{info}/RECORD", "".join(f"{path},,\n" for path in [*contents, f"{info}/RECORD"]))
