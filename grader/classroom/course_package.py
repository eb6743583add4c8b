"""The part of the course that cluster nodes get: the grader, the exercises and the headers, as one folder.

Ray packs it, names it by its content, and unpacks it once on each node, where jobs run in it. Nothing of the course has
to be installed on the nodes. Solutions and tests are not sent.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import grader
from grader.course import Course
from grader.frontend import course_headers

_LEFT_OUT = shutil.ignore_patterns("__pycache__", "*.pyc", "*.ipynb", ".*")


def pack(course: Course, folder: Path) -> None:
    """Copy the grader, the exercises and the headers to an empty folder."""
    shutil.copytree(Path(grader.__file__).parent, folder / "grader", ignore=_LEFT_OUT)
    shutil.copytree(course.root / "exercises", folder / "exercises", ignore=_LEFT_OUT)
    shutil.copytree(course_headers.FOLDER, folder / "lessons" / course_headers.FOLDER.name, ignore=_LEFT_OUT)
    # Write an empty lesson for each day, because Course requires the lessons. Nodes do not read them.
    for day in course.days:
        lesson = folder / day.lesson.relative_to(course.root)
        lesson.parent.mkdir()
        lesson.touch()
