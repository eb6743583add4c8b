"""The files of a lesson, independent of the folder in which its notebook was started."""

from __future__ import annotations

from pathlib import Path

from grader.course import course_root
from grader.report.notebook import style
from grader.setup.errors import GraderError


class LessonFolder(type(Path())):  # type: ignore[misc]
    """A path that is printed relative to the course, so that stored outputs name no folder of a machine."""

    def __repr__(self) -> str:
        try:
            return str(Path(self).relative_to(course_root()))
        except ValueError:
            return self.name


def lesson(day: str) -> Path:
    """Return the folder of a lesson under ``lessons/``; also apply the course's style to matplotlib.

    ``day`` is the folder's name, or the day's number.
    """
    style.use()
    lessons = course_root() / "lessons"
    found = [path for path in sorted(lessons.glob("*/")) if path.name == day]
    if not found:
        number = "".join(filter(str.isdigit, str(day)[:6]))
        found = [path for path in sorted(lessons.glob("day[0-9]*")) if number and path.name[3:5] == number.zfill(2)]
    if len(found) != 1:
        known = ", ".join(path.name for path in sorted(lessons.glob("day[0-9]*"))) or "none"
        raise GraderError(f"there is no lesson {day!r}", f"Lessons here: {known}.")
    return LessonFolder(found[0])
