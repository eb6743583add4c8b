"""Puts the course into the wheel, as ``grader/course_files``; all else that a build needs stands in pyproject.toml."""

import runpy
import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

HERE = Path(__file__).resolve().parent
SHIPPED = runpy.run_path(str(HERE / "grader" / "setup" / "shipped.py"))


class BuildWithCourse(build_py):
    """Copies the lessons, exercises and solutions beside the modules. An editable install finds them where they are."""

    def run(self) -> None:
        super().run()
        if self.editable_mode:
            return
        target = Path(self.build_lib) / "grader" / SHIPPED["INSIDE"]
        shutil.rmtree(target, ignore_errors=True)  # what an earlier build left in the same folder
        for name in SHIPPED["files"](HERE):
            place = target / name
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(HERE / name, place)


setup(cmdclass={"build_py": BuildWithCourse})
