"""Grading a class of 300 students: ``python -m tests.classroom.class_of_300``. Run it on an idle machine.

The class has correct, wrong, slow, crashing and endless kernels, and files that are not C++. No two sources are equal,
as in a real class. They are in folders and archives, with names that learning systems use. The command prints the wall
time, processor time, peak memory and the number of students per verdict. It fails if a student gets a wrong verdict.
"""

from __future__ import annotations

import argparse
import collections
import json
import resource
import subprocess
import sys
import tempfile
import threading
import time
import zipfile
from pathlib import Path

from grader.course.authoring.mistakes import other_designs, read_mistakes
from tests.exercises.conftest import COURSE

PAGE = resource.getpagesize()
LIMIT_SECONDS = 600
"""Limit for 300 submissions on two cores."""


def kinds(name: str) -> list[tuple[str, str]]:
    """Return kernels as students write them, each with the stages at which it may fail ("" if it is correct)."""
    entry = COURSE.find(name)
    solution = entry.solution.read_text()
    head, brace, tail = solution.partition("{\n")
    right = [solution, *other_designs(entry).values()]
    launcher = solution.rindex('extern "C"')
    body = solution.index("{\n", launcher) + 2
    made = [(text, "") for text in right]
    mistakes = read_mistakes(entry)
    made += [(mistake.text(entry), " ".join(mistake.stages)) for mistake in mistakes.wrong]
    made.append((entry.skeleton.read_text(), " ".join(mistakes.skeleton.stages) if mistakes.skeleton else "correct"))
    made.append((solution[:body] + "    *(volatile int*)8 = 1;\n" + solution[body:], "correct"))
    made.append((solution[:body] + "    for (volatile int i = 0;; i = i + 1) {}\n" + solution[body:], "correct"))
    made.append((head + brace + "    this is no C++\n" + tail, "builds"))
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
            with zipfile.ZipFile(folder / f"{student}.zip", "w") as archive:
                archive.writestr(f"homework/{entry.day}/{entry.variable}.cu", text)
                archive.writestr("__MACOSX/._homework", b"\0\5\x16\7")
        else:
            place = folder / student / entry.day
            place.mkdir(parents=True)
            (place / f"{entry.variable}.cu").write_text(text)
    return deserved


class Memory(threading.Thread):
    """Peak memory of a process and its descendants: resident memory without shared pages of files."""

    def __init__(self, root: int) -> None:
        super().__init__(daemon=True)
        self.root, self.peak, self.ended = root, 0, threading.Event()

    def run(self) -> None:
        while not self.ended.wait(0.2):
            self.peak = max(self.peak, sum(map(private, below(self.root))))


def below(root: int) -> list[int]:
    """Return a process and its descendants."""
    children = collections.defaultdict(list)
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        children[int(fields[1])].append(int(folder.name))
    found = [root]
    for process in found:
        found += children[process]
    return found


def private(process: int) -> int:
    """Return the bytes of a process that are not file pages."""
    try:
        fields = Path(f"/proc/{process}/statm").read_text().split()
    except OSError:
        return 0
    return (int(fields[1]) - int(fields[2])) * PAGE


def verdict(result: dict) -> str:
    """Return the stage at which a student failed, or "" for a pass."""
    stages = result["verdicts"][0]["stages"] if result["verdicts"] else []
    bad = [stage["name"] for stage in stages if stage["status"] in ("failed", "error")]
    return bad[0] if bad else "" if stages else "not read"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--students", type=int, default=300)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--exercise", default="day01_residual_add/residual_add")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="class-") as name:
        folder, out = Path(name, "class"), Path(name, "out")
        folder.mkdir()
        deserved = hand_in(folder, options.students, options.exercise)
        command = [sys.executable, "-m", "grader", "grade", str(folder), "--out", str(out)]
        command += ["--exercise", options.exercise, "--workers", str(options.workers)]
        began = time.monotonic()
        with Path(name, "printed").open("w+") as printed:
            process = subprocess.Popen(command, stdout=printed, stderr=printed)
            memory = Memory(process.pid)
            memory.start()
            code = process.wait()
            memory.ended.set()
            memory.join()
            printed.seek(0)
            text = printed.read()
        wall = time.monotonic() - began
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        if code != 0:
            print(text[-2000:])
            return 1
        results = [json.loads(path.read_text()) for path in sorted(out.glob("*/results.json"))]
    unfair = [
        (result["student"], deserved[result["student"]], verdict(result))
        for result in results
        if verdict(result) not in (deserved[result["student"]].split() or [""])
    ]
    seconds = used.ru_utime + used.ru_stime
    print(f"{len(results)} submissions of {options.exercise}, {options.workers} workers")
    print(f"wall time          {wall:8.1f} s  ({wall / len(results):.2f} s each; at most {LIMIT_SECONDS} s for 300)")
    print(f"processor time     {seconds:8.1f} s  ({seconds / len(results):.2f} s each), without killed child processes")
    print(f"peak memory        {memory.peak / 2**20:8.0f} MiB, all processes")
    for stage, number in collections.Counter(verdict(result) for result in results).most_common():
        print(f"{'failed ' + stage if stage else 'passed':18} {number:8}")
    for student, wanted, got in unfair:
        print(f"WRONG VERDICT: {student}: {got or 'passed'} instead of {wanted or 'passed'}")
    return int(bool(unfair) or len(results) != options.students)


if __name__ == "__main__":
    sys.exit(main())
