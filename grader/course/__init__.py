"""The course as data: where its days and exercises are (``catalog``) and what each exercise asks for (``task``).

Importing this is cheap: torch comes with the first ``Entry.load``.
"""

from __future__ import annotations

from grader.course.catalog import Course, Day, Entry, course_root, find

__all__ = ["Course", "Day", "Entry", "course_root", "find"]
