"""A class in which 5% of the students are hostile, graded completely, with all pages and exports.

``python -m tests.classroom.hostile_class``.

It fails if a hostile student gets a point, an honest student gets too few points, or a file is missing.
"""

from __future__ import annotations

import argparse
import csv
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path

from grader.classroom.exports import moodle
from grader.classroom.gradebook import load
from tests.classroom import class_of_300, hostile


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--students", type=int, default=300)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--exercise", default="day01_residual_add/residual_add")
    options = parser.parse_args()
    count = max(1, options.students // 20)
    with tempfile.TemporaryDirectory(prefix="class-") as name:
        folder, out = Path(name, "class"), Path(name, "out")
        folder.mkdir()
        deserved = class_of_300.hand_in(folder, options.students - count, options.exercise)
        bad = set(hostile.hand_in(folder, options.exercise.rpartition("/")[2], count))
        command = [sys.executable, "-m", "grader", "grade", str(folder), "--out", str(out)]
        command += ["--exercise", options.exercise, "--workers", str(options.workers)]
        began = time.monotonic()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        seconds = time.monotonic() - began
        book = load(out)
        wrong = [g.student for g in book.grades if (g.total > 0) != (g.student in deserved and not deserved[g.student])]
        wrong += sorted((bad | deserved.keys()) ^ {grade.student for grade in book.grades})
        made = moodle.export(book, out, out)
        with zipfile.ZipFile(out / "moodle-feedback.zip") as archive:
            feedback = len(archive.namelist())
        with (out / "moodle-grades.csv").open(newline="") as file:
            rows = len(list(csv.reader(file))) - 1
        pages = len(list(out.glob("*/feedback.html")))
        size = (out / "class.html").stat().st_size
    print(f"{options.students} submissions, {count} of them hostile: {seconds:.0f} s; {pages} pages of feedback")
    print(
        f"Moodle: {rows} grades, {feedback} files; class.html has {size / 2**20:.1f} MiB; left out: "
        f"{len(made.left_out)}"
    )
    for student in wrong:
        print(f"UNDESERVED GRADE: {student!a}")
    return int(bool(wrong) or pages != options.students or rows != feedback or rows != len(deserved))


if __name__ == "__main__":
    sys.exit(main())
