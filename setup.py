"""Copy the course into the wheel, as ``grader/course_files``. pyproject.toml has all other build settings."""

import runpy
import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

HERE = Path(__file__).resolve().parent
SHIPPED = runpy.run_path(str(HERE / "grader" / "setup" / "shipped.py"))


class BuildWithCourse(build_py):
    """A build step that copies lessons, exercises and solutions into the package. An editable install needs no copy."""

    def run(self) -> None:
        super().run()
        if self.editable_mode:
            return
        target = Path(self.build_lib) / "grader" / SHIPPED["INSIDE"]
        shutil.rmtree(target, ignore_errors=True)  # remove the files of an earlier build
        for name in SHIPPED["files"](HERE):
            place = target / name
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(HERE / name, place)


setup(cmdclass={"build_py": BuildWithCourse})
