"""All measurements on a real GPU in one command: verdicts, errors, memory, compute-sanitizer, times.

``python -m tests.gpu.verify --out DIR [--record] [--steps STEP,...] [NAME...]`` grades every solution on the GPU,
measures its errors compared with float64 and the memory of flash attention at 65,536 keys, runs the solutions under
compute-sanitizer and times them together with torch. The fastest steps run first. Each step has a time limit. If it is
exceeded, the step is stopped, and its results so far are kept. The output of a step is in DIR/<step>.txt, and its exit
status in DIR/steps.json. ``--record`` also writes the figures to the files that the lessons show.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from grader.course import Entry
from tests.gpu.counted import runnable
from tests.gpu.launch_solutions import chosen


def grade(entry: Entry, out: Path) -> dict[str, object]:
    """Run ``grader check`` with one solution on the GPU."""
    result = out / f"{entry.name.replace('/', '.')}.json"
    command = [sys.executable, "-m", "grader", "check", entry.name, "--file", str(entry.solution)]
    done = subprocess.run(
        [*command, "--device", "cuda", "--again", "--json", str(result)], capture_output=True, text=True, timeout=300
    )
    verdict = json.loads(result.read_text()) if result.exists() else {}
    return {"exercise": entry.name, "exit": done.returncode, "verdict": verdict, "text": done.stdout + done.stderr}


def check_all(names: list[str], out: Path) -> int:
    """Grade the solutions, four at a time; return the number of failures."""
    failed = 0
    (out / "verdicts").mkdir(exist_ok=True)
    with ThreadPoolExecutor(min(4, os.cpu_count() or 1)) as pool:
        for row in pool.map(lambda entry: grade(entry, out / "verdicts"), runnable(chosen(names))):
            print(f"check {'pass' if row['exit'] == 0 else 'FAIL'} {row['exercise']}", flush=True)
            if row["exit"] != 0:
                failed += 1
                print(str(row["text"])[-3000:], flush=True)
    return failed


def commands(names: list[str], out: Path, record: bool) -> dict[str, tuple[list[str], float]]:
    """Return the command of each step and its time limit in seconds, fastest first."""
    python, kept = [sys.executable], ["--record"] if record else []
    timed = [entry.name for entry in chosen(names)] if names else ["--all"]
    modules = [*python, "-m"]
    return {
        "build": ([*modules, "tests.gpu.launch_solutions", "--build-only", *names], 120.0),
        "memory": ([*python, "lessons/day06_flash_attention/measure.py", "--only-long", *kept], 90.0),
        "errors": (
            [*modules, "tests.gpu.errors", "--device", "cuda", "--out", str(out / "errors.json")] + (names or kept),
            180.0,
        ),
        "check": ([*modules, "tests.gpu.verify", "--out", str(out), "--steps", "only-check", *names], 240.0),
        "bench": (
            [*modules, "grader", "bench", *timed, "--device", "cuda", "--json", str(out / "bench.json"), *kept],
            540.0,
        ),
        "sanitize": (
            [*modules, "tests.gpu.sanitize", "--out", str(out / "sanitizer.json"), "--total", "400", *kept, *names],
            520.0,
        ),
    }


def run_step(step: str, command: list[str], limit: float, out: Path) -> dict[str, object]:
    """Run one step with its time limit. Write its output to a file, and print the end of it."""
    began = time.monotonic()
    log = out / f"{step}.txt"
    with log.open("w") as file:
        process = subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT, start_new_session=True)
        try:
            code: int | None = process.wait(timeout=limit)
        except subprocess.TimeoutExpired:
            code = None
        finally:  # also if this program is terminated, so that no process is left
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
    seconds = time.monotonic() - began
    ended = (
        "passed" if code == 0 else f"stopped at its limit of {limit:.0f} s" if code is None else f"failed, exit {code}"
    )
    print(f"== {step}: {ended}, {seconds:.0f} s", flush=True)
    print("\n".join(log.read_text(errors="replace").splitlines()[-12 if code == 0 else -40 :]), flush=True)
    return {"step": step, "ended": ended, "exit": code, "seconds": round(seconds, 1), "command": " ".join(command[1:])}


def main() -> int:
    """Run the steps one after another; return 1 if one of them failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--steps", default="", help="comma-separated: build, memory, errors, check, bench, sanitize")
    parser.add_argument("--record", action="store_true", help="write the figures for the lessons")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    out: Path = arguments.out
    out.mkdir(parents=True, exist_ok=True)
    if arguments.steps == "only-check":
        return 1 if check_all(arguments.names, out) else 0
    known = commands(arguments.names, out, arguments.record)
    wanted = [step for step in arguments.steps.split(",") if step] or list(known)
    unknown = sorted(set(wanted) - set(known))
    if unknown:
        parser.error(f"no step is called {', '.join(unknown)}; there are {', '.join(known)}")
    ended = []
    for step, (command, limit) in known.items():
        if step in wanted:
            ended.append(run_step(step, command, limit, out))
            (out / "steps.json").write_text(json.dumps(ended, indent=1) + "\n")
    return 0 if all(row["exit"] == 0 for row in ended) else 1


if __name__ == "__main__":
    sys.exit(main())
