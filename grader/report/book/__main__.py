"""``python -m grader.report.book [OUT]``: the program of ``make book``."""

from __future__ import annotations

import sys
from pathlib import Path

from grader.course import Course
from grader.report.book.site import build
from grader.setup.errors import GraderError


def main(arguments: list[str]) -> int:
    """Build the book into OUT, by default ``build/book`` in the course's folder."""
    try:
        course = Course()
        out = Path(arguments[0]) if arguments else course.root / "build" / "book"
        print(f"The book: {build(course, out)}")
    except GraderError as error:
        print(f"book: {error.message}", file=sys.stderr)
        if error.hint:
            print(error.hint, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
