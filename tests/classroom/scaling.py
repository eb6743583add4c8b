"""Scaling of class grading with the number of workers on one machine.

``python -m tests.classroom.scaling --submissions 300 --workers 1,2,4,16 --record``.

For each number of workers it grades a class of new sources (tests/classroom/synthetic.py), with a separate build cache
that contains the grader's own libraries (``--cold``: an empty cache). With ``--even``, the size of the class is
proportional to the number of workers, so that one worker does not take hours; compare rates, not times.

It records seconds, kernels per second, efficiency (relative to one worker, per worker), the workers' utilization, and
memory. For comparison, it also runs as many processes that only compute in Python, and then as many that only compile.
No other programs should run during the measurement.
"""

from __future__ import annotations

import argparse
import collections
import datetime
import json
import os
import platform
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from grader.classroom.store import FOLDER, PLAN
from grader.course import Course
from tests.classroom.synthetic import EXERCISES, hand_in

ROOT = Path(__file__).parents[2]
RECORDED = Path(__file__).with_name("scaling.json")
WORKERS_GOAL, EFFICIENCY_GOAL, MEGABYTES_GOAL = 16, 0.8, 250


class Memory(threading.Thread):
    """Peak memory in MiB: of the grader's processes alone, and including the compilers and kernels that they start."""

    def __init__(self, root: int, every: float) -> None:
        super().__init__(daemon=True)
        self.root, self.every, self.ended = root, every, threading.Event()
        self.graders = self.all = 0.0
        self.measure = "PSS"

    def run(self) -> None:
        while not self.ended.wait(self.every):
            found = [(self._size(process), _is_python(process)) for process in below(self.root)]
            self.all = max(self.all, sum(size for size, _ in found))
            self.graders = max(self.graders, sum(size for size, python in found if python))

    def _size(self, process: int) -> float:
        try:
            for line in Path(f"/proc/{process}/smaps_rollup").read_text().splitlines():
                if line.startswith("Pss:"):
                    return int(line.split()[1]) / 1024
            return 0.0
        except FileNotFoundError:
            if Path(f"/proc/{process}").exists():
                self.measure = "resident memory without pages of files"
        except OSError:
            pass
        try:
            fields = Path(f"/proc/{process}/statm").read_text().split()
            return (int(fields[1]) - int(fields[2])) * os.sysconf("SC_PAGESIZE") / 2**20
        except (OSError, IndexError):
            return 0.0


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


def _is_python(process: int) -> bool:
    try:
        return b"python" in Path(f"/proc/{process}/cmdline").read_bytes().split(b"\0")[0]
    except OSError:
        return False


def run_measured(command: list[str], every: float, environment: dict[str, str] | None = None) -> tuple[float, Memory]:
    """Run a command that grades a class; return its seconds and its memory, which is measured ``every`` few seconds."""
    began = time.monotonic()
    with tempfile.TemporaryFile("w+") as printed:
        process = subprocess.Popen(command, stdout=printed, stderr=printed, cwd=ROOT, env=environment)
        memory = Memory(process.pid, every)
        memory.start()
        code = process.wait()
        memory.ended.set()
        memory.join()
        seconds = time.monotonic() - began
        printed.seek(0)
        if code != 0:
            raise SystemExit(f"the class could not be graded:\n{printed.read()[-2000:]}")
    return seconds, memory


def grade(students: int, workers: int, exercises: tuple[str, ...], cache: Path, every: float) -> dict[str, Any]:
    """Grade one class in a separate process, and return the measurements."""
    course = Course(ROOT)
    with tempfile.TemporaryDirectory(prefix="scaling-") as name:
        folder, out = Path(name, "class"), Path(name, "out")
        jobs = hand_in(folder, course, exercises, students, f"{time.time_ns()}")
        instructor = Path(name, "instructor.toml")
        instructor.write_text("seed = 7\n")
        command = [sys.executable, "-m", "grader", "grade", str(folder), "--out", str(out), "--workers", str(workers)]
        command += ["--instructor", str(instructor)] + [word for name in exercises for word in ("--exercise", name)]
        seconds, memory = run_measured(command, every, environment(cache))
        answers = [json.loads(path.read_text()) for path in (out / FOLDER).glob("*.json") if path.name != PLAN]
    busy = sum(answer["seconds"] for answer in answers)
    verdicts = [verdict for answer in answers for verdict in answer["verdicts"]]
    return {
        "workers": workers,
        "submissions": students,
        "kernels": jobs,
        "graded": len(answers),
        "passed": sum(verdict["passed"] for verdict in verdicts),
        "could_not_grade": sum(any(s["status"] == "error" for s in v["stages"]) for v in verdicts),
        "seconds": round(seconds, 1),
        "kernels_per_second": round(jobs / seconds, 3),
        "seconds_of_one_kernel": round(busy / jobs, 3),
        "longest_kernel_seconds": round(max(answer["seconds"] for answer in answers), 1),
        "workers_busy": round(busy / seconds / workers, 3),
        "memory": memory.measure,
        "graders_megabytes": round(memory.graders),
        "megabytes_a_worker": round(memory.graders / workers),
        "all_processes_megabytes": round(memory.all),
    }


def environment(cache: Path) -> dict[str, str]:
    """Return an environment that imports this checkout first and does not use the user's build cache."""
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    return {**os.environ, "PYTHONPATH": path, "GRADER_CACHE": str(cache)}


BUSY = "import time; t = time.perf_counter(); x = 0\nfor i in range(10**7): x += i * i\nprint(time.perf_counter() - t)"
COMPILED = "#include <algorithm>\n#include <map>\n#include <string>\nint f(std::string s) { return (int)s.size(); }\n"


def yardsticks(workers: int) -> dict[str, float]:
    """Return the seconds of equal work in parallel processes; ideally they do not depend on ``workers``."""

    def at_once(run: Any) -> float:
        began = time.monotonic()
        threads = [threading.Thread(target=run) for _ in range(workers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return round(time.monotonic() - began, 2)

    def python() -> None:
        subprocess.run([sys.executable, "-S", "-c", BUSY], stdout=subprocess.DEVNULL, check=True)

    def compilers() -> None:
        command = [os.environ.get("GRADER_CXX", "c++"), "-x", "c++", "-O1", "-S", "-o", "/dev/null", "-"]
        for _ in range(8):
            subprocess.run(command, input=COMPILED, text=True, check=True)

    return {"python_seconds": at_once(python), "compilers_seconds": at_once(compilers)}


def machine() -> dict[str, Any]:
    """Return a description of this machine."""
    info = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
    models = [line.partition(":")[2].strip() for line in info.splitlines() if line.startswith("model name")]
    import torch

    from grader.execution.runner import tiers
    from grader.frontend.toolchain.compilers import find_cxx

    return {
        "processor": models[0] if models else platform.machine(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gigabytes": round(os.sysconf("SC_PAGESIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "torch": str(torch.__version__),
        "compiler": str(find_cxx()),
        "jail": tiers.in_force().tier,
        "asks_nvcc": os.environ.get("GRADER_CHECK_NVCC", ""),
        "load_before": round(os.getloadavg()[0], 2),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--submissions", type=int, default=300, help="students, with one kernel for each exercise")
    parser.add_argument("--workers", default="1,2,4,16", help="comma-separated numbers of workers")
    parser.add_argument("--exercise", action="append", help=f"default: {', '.join(EXERCISES)}")
    parser.add_argument(
        "--even", action="store_true", help="make the class larger with more workers, from 40 submissions on"
    )
    parser.add_argument("--cold", action="store_true", help="start with an empty build cache")
    parser.add_argument("--memory-every", type=float, default=3.0, metavar="SECONDS")
    parser.add_argument("--note", default="", help="note to store in the record")
    parser.add_argument("--record", action="store_true", help=f"write {RECORDED.name} next to this file")
    parser.add_argument("--out", type=Path, help="write the record to this file instead")
    options = parser.parse_args()
    exercises = tuple(Course(ROOT).find(name).name for name in options.exercise or EXERCISES)
    counts = sorted({int(word) for word in options.workers.split(",")})
    os.environ.setdefault("GRADER_CHECK_NVCC", "off")  # nvcc would dominate the time
    record: dict[str, Any] = {
        "machine": machine(),
        "date": datetime.date.today().isoformat(),
        "note": options.note,
        "exercises": exercises,
        "cache": "empty" if options.cold else "contains the grader's own libraries",
        "runs": [],
    }
    for workers in counts:
        students = options.submissions
        if options.even:
            students = min(students, max(40, students * workers // counts[-1]))
        with tempfile.TemporaryDirectory(prefix="scaling-cache-") as name:
            if not options.cold:
                grade(4, min(workers, 4), exercises, Path(name), 60.0)
            run = grade(students, workers, exercises, Path(name), options.memory_every)
        run["yardsticks"] = yardsticks(workers)
        record["runs"].append(run)
        first = record["runs"][0]
        each = first["kernels_per_second"] / first["workers"]
        run["efficiency"] = round(run["kernels_per_second"] / workers / each, 3)
        print(json.dumps(run), flush=True)
        if options.record or options.out:
            (options.out or RECORDED).write_text(json.dumps(record, indent=1) + "\n")
    most = record["runs"][-1]
    if most["workers"] >= WORKERS_GOAL:
        met = most["efficiency"] >= EFFICIENCY_GOAL and most["megabytes_a_worker"] <= MEGABYTES_GOAL
        print(
            f"The goal (efficiency {EFFICIENCY_GOAL}, {MEGABYTES_GOAL} MiB per worker) is {'met' if met else 'missed'}"
        )
    lost = [run for run in record["runs"] if run["graded"] != run["kernels"] or run["could_not_grade"]]
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
