"""Grading of a class on one GPU and on two GPUs of one machine: ``python -m tests.classroom.two_gpus --record``.

A Ray cluster of one node assigns a whole GPU to each job of ``--device cuda``. The record contains the seconds, the
utilization of each GPU (NVML, sampled 10 times per second), and the grader's times for the same kernel with and without
a busy second GPU.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import pynvml

from grader.classroom.leaderboard import times_of
from grader.classroom.store import FOLDER, PLAN
from grader.course import Course
from grader.verdict import Verdict
from tests.classroom.ray_nodes import local_nodes
from tests.classroom.scaling import ROOT, environment, machine
from tests.gpu.compare_counters import versions

RECORDED = Path(__file__).with_name("two_gpus.json")
EXERCISE = "day04_linear/linear"
"""An exercise whose benchmark sizes take 0.1 to 16 ms. For long times, the overhead of the grader's clock is small.
"""


class Busy(threading.Thread):
    """The number of samples in which each GPU was busy."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.ended = threading.Event()
        self.looks = 0
        self.gpus = [pynvml.nvmlDeviceGetHandleByIndex(number) for number in range(pynvml.nvmlDeviceGetCount())]
        self.at_work = [0] * len(self.gpus)
        self.all_at_work = 0

    def run(self) -> None:
        while not self.ended.wait(0.1):
            now = [pynvml.nvmlDeviceGetUtilizationRates(gpu).gpu > 0 for gpu in self.gpus]
            self.looks += 1
            self.at_work = [count + busy for count, busy in zip(self.at_work, now, strict=True)]
            self.all_at_work += all(now)


def grade(base: Path, course: Course, students: int, gpus: int) -> dict[str, Any]:
    """Grade the class on ``gpus`` GPUs.

    All students have the same kernel, but with different comments, so that no verdict comes from the cache.
    """
    solution = course.find(EXERCISE)
    folder, out = base / f"class{gpus}", base / f"out{gpus}"
    for number in range(students):
        file = folder / f"student{number:03}" / solution.day / f"{solution.variable}.cu"
        file.parent.mkdir(parents=True)
        file.write_text(f"// {gpus} {number}\n{solution.solution.read_text()}")
    (base / "instructor.toml").write_text("seed = 7\n")
    with local_nodes([gpus], cores=max(2, len(os.sched_getaffinity(0)) // 2)) as nodes:
        command = [sys.executable, "-m", "grader", "grade", str(folder), "--out", str(out), "--cluster", nodes.address]
        command += ["--device", "cuda", "--instructor", str(base / "instructor.toml"), "--exercise", EXERCISE]
        busy = Busy()
        busy.start()
        began = time.monotonic()
        code = subprocess.run(command, cwd=ROOT, env=environment(base / "cache"), stdout=subprocess.DEVNULL).returncode
        seconds = time.monotonic() - began
        busy.ended.set()
        busy.join()
    if code:
        raise SystemExit("the class could not be graded")
    answers = [json.loads(path.read_text()) for path in (out / FOLDER).glob("*.json") if path.name != PLAN]
    verdicts = [Verdict.from_dict(data, "") for answer in answers for data in answer["verdicts"]]
    times: dict[str, list[float]] = {}
    for verdict in verdicts:
        for size, microseconds, _ in times_of(verdict):
            times.setdefault(size, []).append(microseconds)
    return {
        "gpus": gpus,
        "seconds": round(seconds, 1),
        "passed": sum(verdict.passed for verdict in verdicts if verdict.device == "cuda"),
        "share_of_looks_at_work": [round(count / busy.looks, 2) for count in busy.at_work],
        "share_of_looks_with_all_at_work": round(busy.all_at_work / busy.looks, 2),
        "median_us": {size: round(statistics.median(found), 3) for size, found in times.items()},
        "spread": {size: round(max(found) / min(found) - 1, 4) for size, found in times.items()},
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--submissions", type=int, default=12)
    parser.add_argument("--record", action="store_true", help=f"write {RECORDED.name} next to this file")
    parser.add_argument("--out", type=Path, help="write the record to this file instead")
    options = parser.parse_args()
    os.environ.setdefault("GRADER_CHECK_NVCC", "off")
    pynvml.nvmlInit()
    course = Course(ROOT)
    command = "python -m tests.classroom.two_gpus --record"
    record: dict[str, Any] = {
        "machine": machine(),
        **versions(),
        "command": command,
        "exercise": EXERCISE,
        "submissions": options.submissions,
        "runs": [],
    }
    with tempfile.TemporaryDirectory(prefix="two-gpus-") as name:
        warm = [sys.executable, "-m", "grader", "check", EXERCISE, "--file", str(course.find(EXERCISE).solution)]
        subprocess.run(warm, cwd=ROOT, env=environment(Path(name) / "cache"), stdout=subprocess.DEVNULL, check=True)
        for gpus in (1, 2):
            record["runs"].append(grade(Path(name), course, options.submissions, gpus))
            print(json.dumps(record["runs"][-1], indent=1), flush=True)
    one, two = record["runs"]
    record["times_beside_a_neighbor"] = {
        size: round(two["median_us"][size] / alone, 4) for size, alone in one["median_us"].items()
    }
    print(json.dumps(record["times_beside_a_neighbor"]))
    if options.record or options.out:
        (options.out or RECORDED).write_text(json.dumps(record, indent=1) + "\n")
    return int(any(run["passed"] != options.submissions for run in record["runs"]))


if __name__ == "__main__":
    sys.exit(main())
