"""Grading a class on a Ray cluster, compared with the same class on this machine without Ray.

``python -m tests.classroom.cluster_record --record``.

The cluster has three nodes, which are processes of this machine; the comparison uses the same number of cores. Two more
runs add faults. In the first, a node hangs after a third of the jobs and resumes when one job is left. In the second, a
node is killed after a third of the jobs, and the driver after half. The record contains the lost jobs, the jobs that
ran twice, and whether the grades are the same.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from grader.classroom.store import FOLDER, PLAN
from grader.course import Course
from tests.classroom.ray_nodes import Silence, local_nodes
from tests.classroom.scaling import ROOT, environment, machine
from tests.classroom.synthetic import EXERCISES, hand_in
from tests.classroom.test_grade import files, written

RECORDED = Path(__file__).with_name("cluster.json")
NODES = 3


def finished(out: Path) -> int:
    """Return the number of finished jobs."""
    return sum(path.name != PLAN for path in (out / FOLDER).glob("*.json"))


def first_difference(one: str, other: str) -> tuple[str, str]:
    """Return the text around the first difference."""
    at = next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    return one[max(0, at - 40) : at + 40], other[max(0, at - 40) : at + 40]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--submissions", type=int, default=300)
    parser.add_argument("--cores", type=int, default=1, help="cores of each node")
    parser.add_argument("--note", default="", help="note to store in the record")
    parser.add_argument("--record", action="store_true", help=f"write {RECORDED.name} next to this file")
    parser.add_argument("--out", type=Path, help="write the record to this file instead")
    options = parser.parse_args()
    os.environ.setdefault("GRADER_CHECK_NVCC", "off")
    course, exercise = Course(ROOT), EXERCISES[0]
    with (
        tempfile.TemporaryDirectory(prefix="cluster-record-") as name,
        local_nodes([0] * NODES, options.cores) as nodes,
    ):
        base = Path(name)
        instructor = base / "instructor.toml"
        instructor.write_text("seed = 7\n")
        hand_in(base / "few", course, (exercise,), 2 * NODES * options.cores, "few")
        hand_in(base / "class", course, (exercise,), options.submissions, "class")
        here, there = ["--workers", str(NODES * options.cores)], ["--cluster", nodes.address]

        def start(folder: str, out: Path, where: list[str], cache: str) -> subprocess.Popen[bytes]:
            command = [sys.executable, "-m", "grader", "grade", str(base / folder), "--out", str(out), *where]
            command += ["--instructor", str(instructor), "--exercise", exercise]
            return subprocess.Popen(command, cwd=ROOT, env=environment(base / cache), stdout=subprocess.DEVNULL)

        def timed(folder: str, out: str, where: list[str], cache: str) -> float:
            began = time.monotonic()
            if start(folder, base / out, where, cache).wait() != 0:
                raise SystemExit("the class could not be graded")
            return time.monotonic() - began

        def wait_for(done: Callable[[], bool], process: subprocess.Popen[bytes]) -> None:
            while not done():
                if process.poll() is not None:
                    raise SystemExit("the driver ended too early")
                time.sleep(0.05)

        record: dict[str, Any] = {"machine": machine(), "date": datetime.date.today().isoformat(), "note": options.note}
        record |= {
            "exercise": exercise,
            "submissions": options.submissions,
            "nodes": NODES,
            "cores_of_a_node": options.cores,
        }
        timed("few", "few-here", here, "cache-here")  # builds the grader's own libraries
        timed("few", "few-there", there, "cache-there")
        local, ray = timed("class", "here", here, "cache-here"), timed("class", "there", there, "cache-there")
        record |= {"local_seconds": round(local, 1), "ray_seconds": round(ray, 1)}
        record["overhead"] = round(ray / local - 1, 3)
        print(json.dumps(record, indent=1), flush=True)

        out = base / "silent"
        began = time.monotonic()
        driver = start("class", out, there, "cache-there")
        wait_for(lambda: finished(out) >= options.submissions // 3, driver)
        at_node, silence = finished(out), Silence(nodes.list_all_nodes()[-1])
        wait_for(lambda: finished(out) >= options.submissions - 1, driver)
        kept = written(out)
        silence.end()
        if driver.wait() != 0:
            raise SystemExit("the class could not be graded with a silent node")
        now = written(out)
        record["silent"] = {
            "done_when_a_node_fell_silent": at_node,
            "seconds": round(time.monotonic() - began, 1),
            "lost": options.submissions - finished(out),
            "done_twice": sum(now.get(path) != when for path, when in kept.items()),
        }
        print(json.dumps(record["silent"]), flush=True)

        out = base / "killed"
        began = time.monotonic()
        driver = start("class", out, there, "cache-there")
        wait_for(lambda: finished(out) >= options.submissions // 3, driver)
        at_node = finished(out)
        nodes.remove_node(nodes.list_all_nodes()[-1], allow_graceful=False)
        wait_for(lambda: finished(out) >= options.submissions // 2, driver)
        driver.send_signal(signal.SIGKILL)
        driver.wait()
        kept = written(out)
        if start("class", out, there, "cache-there").wait() != 0:
            raise SystemExit("the class could not be resumed")
        now = written(out)
        record["killed"] = {
            "done_when_a_node_was_killed": at_node,
            "done_when_the_driver_was_killed": len([path for path in kept if path.parent.name == FOLDER]),
            "seconds": round(time.monotonic() - began, 1),
            "lost": options.submissions - finished(out),
            "done_twice": sum(now.get(path) != when for path, when in kept.items()),
        }
        same = {
            folder: (base / folder / "grades.csv").read_bytes() == (base / "here/grades.csv").read_bytes()
            for folder in ("there", "silent", "killed")
        }
        record["grades_csv_is_the_same"] = all(same.values())
        texts = {folder: files(base / folder) for folder in ("here", "there", "silent", "killed")}
        record["results_that_differ_but_for_times"] = {
            f"{folder}/{name}": first_difference(text, texts[folder].get(name, ""))
            for folder in ("there", "silent", "killed")
            for name, text in sorted(texts["here"].items())
            if texts[folder].get(name) != text
        }
    print(json.dumps(record, indent=1), flush=True)
    if options.record or options.out:
        (options.out or RECORDED).write_text(json.dumps(record, indent=1) + "\n")
    faults = [record[how][what] for how in ("silent", "killed") for what in ("lost", "done_twice")]
    return int(any(faults) or not record["grades_csv_is_the_same"])


if __name__ == "__main__":
    sys.exit(main())
