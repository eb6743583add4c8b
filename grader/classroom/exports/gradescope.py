"""Gradescope: the archive of an autograder.

Its layout is that of gradescope-autograders.readthedocs.io ("Autograder Specifications"): setup.sh and run_autograder
at the archive's root, which is unpacked to /autograder/source; the harness copies run_autograder to /autograder, puts
the student's files into /autograder/submission and submission_metadata.json next to it, and reads results/results.json.

The archive contains the grader, the exercises and the instructor's file, and no solutions.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from grader.classroom.instructor import read_instructions
from grader.course import Course, Entry
from grader.course.learner.zipped import zipped
from grader.setup.errors import GraderError
from grader.setup.files import write_file

SETTINGS = "gradescope.json"
"""The file of settings, next to run_autograder."""
INSTRUCTOR = "instructor.toml"
PROGRAMS = frozenset({"setup.sh", "run_autograder"})
COURSE = "course"
"""The folder in the archive that holds the course. The instructor's file lies outside of it."""


class Settings(msgspec.Struct, forbid_unknown_fields=True):
    """The options chosen when the archive was created."""

    exercises: list[str]
    visibility: str = "visible"
    unsafe: bool = False


# The course needs Python 3.11. In Ubuntu 22.04 it is a separate package, because python3 is Python 3.10. Later versions
# of Ubuntu have a sufficient python3.
_SETUP = """#!/usr/bin/env bash
# Installs the course. Gradescope runs it once, when it builds the image; choose the newest Ubuntu that it offers.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/course"
export DEBIAN_FRONTEND=noninteractive
apt-get update
apt-get install -y --no-install-recommends g++ make bubblewrap python3 python3-venv
python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    apt-get install -y --no-install-recommends python3.11 python3.11-venv
make TORCH=cpu setup
"""

_RUN = """#!/usr/bin/env bash
# Grades one submission. The folder is Gradescope's unless another is given.
set -euo pipefail
root="${1:-/autograder}"
cd "$root/source/course"
exec .venv/bin/python -m grader.classroom.exports.gradescope_run "$root"
"""


def export(
    course: Course,
    entries: Sequence[Entry],
    target: Path,
    instructor: Path | None = None,
    visibility: str = "visible",
    unsafe: bool = False,
) -> int:
    """Write the archive; return its number of files."""
    settings = Settings([entry.name for entry in entries], visibility, unsafe)
    files = {
        "setup.sh": _SETUP.encode(),
        "run_autograder": _RUN.encode(),
        SETTINGS: msgspec.json.format(msgspec.json.encode(settings), indent=1) + b"\n",
    }
    if instructor is not None:
        policy = read_instructions(instructor, course).policy  # raises an error now, and not only in Gradescope
        if policy.late is not None and policy.late.submitted:
            raise GraderError(
                f"{instructor}: [late] submitted = {policy.late.submitted!r} is not supported in Gradescope",
                "Gradescope provides the submission time: omit submitted, and omit due to use the assignment's due "
                "date.",
            )
        if policy.extra:
            raise GraderError(
                f"{instructor}: [[extra]] is not supported in Gradescope",
                "Remove [[extra]], because an autograder does not know the names of students. Add a "
                "submission-specific adjustment in Gradescope.",
            )
        files[INSTRUCTOR] = instructor.read_bytes()
    for path in _files(course):
        files[f"{COURSE}/{path.relative_to(course.root).as_posix()}"] = path.read_bytes()
    write_file(target, zipped(files, PROGRAMS))
    return len(files)


def _files(course: Course) -> Iterable[Path]:
    """Return the files that grading needs: never a solution, a test or a learner's own state."""
    root = course.root
    wanted = ["Makefile", "README.md", "LICENSE", "pyproject.toml", "constraints.txt"]
    wanted += [f"lessons/{day.folder}/lesson.ipynb" for day in course.days]  # course.toml requires them
    missing = [name for name in ("Makefile", "pyproject.toml", "constraints.txt") if not (root / name).is_file()]
    if missing:
        raise GraderError(
            f"{root} has no {missing[0]}", "The course is incomplete: run the command in a complete copy."
        )
    yield from (root / name for name in wanted if (root / name).is_file())
    for folder in ("grader", "exercises", "lessons/llmk"):
        for path in sorted((root / folder).rglob("*")):
            plain = path.is_file() and not path.is_symlink()
            if plain and "__pycache__" not in path.parts and path.suffix != ".pyc" and not path.name.startswith("."):
                yield path
