"""The build step that copies the course into the wheel, and into a source distribution.

pyproject.toml names it. setuptools loads this file alone, before the package is installed, so it must not import the
grader.
"""

from __future__ import annotations

import runpy
import shutil
from pathlib import Path

from setuptools.command.build_py import build_py

ROOT = Path(__file__).resolve().parents[2]
SHIPPED = runpy.run_path(str(Path(__file__).with_name("shipped.py")))


class BuildWithCourse(build_py):  # type: ignore[misc]
    """Copy lessons, exercises and solutions into the package. An editable install needs no copy."""

    def run(self) -> None:
        """Build the package, then copy the course."""
        super().run()
        if self.editable_mode:
            return
        target = Path(self.build_lib) / "grader" / SHIPPED["INSIDE"]
        shutil.rmtree(target, ignore_errors=True)  # remove the files of an earlier build
        for name in SHIPPED["files"](ROOT):
            place = target / name
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, place)

    def get_source_files(self) -> list[str]:
        """Return the files that a source distribution needs, from which a wheel can be built as well."""
        return [*super().get_source_files(), *SHIPPED["files"](ROOT), "constraints.txt"]
