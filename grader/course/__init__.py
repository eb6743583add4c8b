"""The course as data: its days and exercises (``catalog``), and the description of each exercise (``task``).

Importing this is cheap: torch is imported by the first ``Entry.load``.
"""

from __future__ import annotations

from grader.course.catalog import Course, Day, Entry, course_root, find

__all__ = ["Course", "Day", "Entry", "course_root", "find"]
