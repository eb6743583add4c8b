"""Grading a class of 300 students: ``python -m tests.classroom.class_of_300``. Run it on an idle machine.

The class has correct, wrong, slow, crashing and endless kernels, and files that are not C++. No two sources are equal,
as in a real class. They are in folders and archives, with names that learning systems use. ``--hostile N`` adds N
submissions that attack the grader. The command prints the wall time, processor time, peak memory and the number of
students per verdict. It fails if a student gets a wrong verdict, or if a page or a file for Moodle is missing.
"""

from __future__ import annotations

import argparse
import collections
import csv
import json
import resource
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

from grader.classroom.exports import moodle
from grader.classroom.gradebook import load
from grader.classroom.submissions import MOODLE
from grader.course.authoring.mistakes import other_designs, read_mistakes
from tests.classroom import hostile
from tests.classroom.archives import zip_of
from tests.classroom.scaling import run_measured
from tests.classroom.synthetic import ENDLESS, in_launcher
from tests.exercises.conftest import COURSE

LIMIT_SECONDS = 600
"""Limit for 300 submissions on two cores."""


def write_worksheet(results: list[dict[str, Any]], path: Path) -> None:
    """Write a grading worksheet of Moodle with each student who is named like a participant."""
    found = [MOODLE.match(result["student"]) for result in results]
    with path.open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(moodle.NAMES)
        table.writerows([f"Participant {match['number']}", "", "-"] for match in found if match and match["number"])


def kinds(name: str) -> list[tuple[str, str]]:
    """Return kernels as students write them, each with the stages at which it may fail ("" if it is correct)."""
    entry = COURSE.find(name)
    solution = entry.solution.read_text()
    mistakes = read_mistakes(entry)
    made = [(text, "") for text in [solution, *other_designs(entry).values()]]
    made += [(mistake.text(entry), " ".join(mistake.stages)) for mistake in mistakes.wrong]
    made.append((entry.skeleton.read_text(), " ".join(mistakes.skeleton.stages) if mistakes.skeleton else "correct"))
    made.append((in_launcher(solution, "    *(volatile int*)8 = 1;\n"), "correct"))
    made.append((in_launcher(solution, ENDLESS), "correct"))
    made.append((solution.replace("{\n", "{\n    this is no C++\n", 1), "builds"))
    return made


def hand_in(folder: Path, count: int, name: str) -> dict[str, str]:
    """Write a class, two thirds of it correct; return the stages at which each student may fail."""
    made = kinds(name)
    right, wrong = [kind for kind in made if not kind[1]], [kind for kind in made if kind[1]]
    deserved = {}
    entry = COURSE.find(name)
    for number in range(count):
        group = wrong if number % 3 == 2 else right
        text, stages = group[number // 3 % len(group)]
        text = f"// Student {number}.\n{text}"
        student = f"Ödön O'Neill, {number:03}_{1000 + number}_assignsubmission_file_"
        deserved[student] = stages
        if number % 2:
            files = {f"homework/{entry.day}/{entry.variable}.cu": text, "__MACOSX/._homework": b"\0\5\x16\7"}
            (folder / f"{student}.zip").write_bytes(zip_of(files))
        else:
            place = folder / student / entry.day
            place.mkdir(parents=True)
            (place / f"{entry.variable}.cu").write_text(text)
    return deserved


def verdict(result: dict) -> str:
    """Return the stage at which a student failed, or "" for a pass."""
    stages = result["verdicts"][0]["stages"] if result["verdicts"] else []
    bad = [stage["name"] for stage in stages if stage["status"] in ("failed", "error")]
    return bad[0] if bad else "" if stages else "not read"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--students", type=int, default=300)
    parser.add_argument("--hostile", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--exercise", default="day01_residual_add/residual_add")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="class-") as name:
        folder, out = Path(name, "class"), Path(name, "out")
        folder.mkdir()
        deserved = hand_in(folder, options.students, options.exercise)
        bad = hostile.hand_in(folder, options.exercise.rpartition("/")[2], options.hostile)
        command = [sys.executable, "-m", "grader", "grade", str(folder), "--out", str(out)]
        command += ["--exercise", options.exercise, "--workers", str(options.workers)]
        wall, memory = run_measured(command, 0.2)
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        results = [json.loads(path.read_text()) for path in sorted(out.glob("*/results.json"))]
        write_worksheet(results, out / "worksheet.csv")
        moodle.export(load(out), out, out, out / "worksheet.csv")
        with (out / "moodle-grades.csv").open(newline="") as file:
            rows = len(list(csv.reader(file))) - 1
        with zipfile.ZipFile(out / "moodle-feedback.zip") as archive:
            feedback = len(archive.namelist())
        pages = len(list(out.glob("*/feedback.html")))
    got = {result["student"]: verdict(result) for result in results}
    unfair = [student for student, stages in deserved.items() if got.get(student) not in (stages.split() or [""])]
    unfair += [student for student in bad if not got.get(student)]
    seconds = used.ru_utime + used.ru_stime
    print(f"{len(results)} submissions of {options.exercise}, {options.hostile} hostile, {options.workers} workers")
    print(f"wall time          {wall:8.1f} s  ({wall / len(results):.2f} s each; at most {LIMIT_SECONDS} s for 300)")
    print(f"processor time     {seconds:8.1f} s  ({seconds / len(results):.2f} s each), without killed child processes")
    print(f"peak memory        {memory.all:8.0f} MiB, all processes ({memory.measure})")
    print(f"pages of feedback  {pages:8}, for Moodle {rows} grades and {feedback} files")
    for stage, number in collections.Counter(got.values()).most_common():
        print(f"{'failed ' + stage if stage else 'passed':18} {number:8}")
    for student in unfair:
        wanted = deserved.get(student, "a failure") or "passed"
        print(f"WRONG VERDICT: {student!a}: {got.get(student, 'missing') or 'passed'} instead of {wanted}")
    complete = pages == len(results) == len(deserved) + len(bad) and rows == feedback == len(deserved)
    return int(bool(unfair) or not complete)


if __name__ == "__main__":
    sys.exit(main())
