"""Everything that a real GPU must show, in one command: verdicts, compute-sanitizer, times.

``python -m tests.gpu.verify --out DIR [NAME...]`` grades every solution on the GPU, runs the solutions under
compute-sanitizer, times them against torch, and leaves the recorded files in DIR. Each step has a time limit.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from grader.course import Entry
from tests.gpu.launch_solutions import chosen


def grade(entry: Entry, out: Path) -> dict[str, object]:
    """``grader check`` of one solution on the GPU."""
    result = out / f"{entry.name.replace('/', '.')}.json"
    command = [sys.executable, "-m", "grader", "check", entry.name, "--file", str(entry.solution)]
    done = subprocess.run(
        [*command, "--device", "cuda", "--json", str(result)], capture_output=True, text=True, timeout=300
    )
    verdict = json.loads(result.read_text()) if result.exists() else {}
    return {"exercise": entry.name, "exit": done.returncode, "verdict": verdict, "text": done.stdout + done.stderr}


def main() -> int:
    """The steps, each timed; the exit code says whether every solution passed and the tools were silent."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--skip", default="", help="comma-separated steps to leave out: check, sanitize, bench")
    arguments = parser.parse_args()
    out: Path = arguments.out
    out.mkdir(parents=True, exist_ok=True)
    skip = arguments.skip.split(",")
    entries = chosen(arguments.names)
    failed = 0
    start = time.monotonic()
    subprocess.run([sys.executable, "-m", "tests.gpu.launch_solutions", "--build-only", *arguments.names], check=False)
    print(f"built {len(entries)} solutions in {time.monotonic() - start:.0f} s", flush=True)
    if "check" not in skip:
        (out / "verdicts").mkdir(exist_ok=True)
        with ThreadPoolExecutor(min(4, os.cpu_count() or 1)) as pool:
            graded = list(pool.map(lambda entry: grade(entry, out / "verdicts"), entries))
        for row in graded:
            print(f"check {'pass' if row['exit'] == 0 else 'FAIL'} {row['exercise']}")
            if row["exit"] != 0:
                failed += 1
                print(str(row["text"])[-3000:])
        print(f"graded at {time.monotonic() - start:.0f} s", flush=True)
    if "sanitize" not in skip:
        sanitize = [sys.executable, "-m", "tests.gpu.sanitize", "--out", str(out / "sanitizer.json"), *arguments.names]
        failed += subprocess.run(sanitize).returncode
        print(f"sanitized at {time.monotonic() - start:.0f} s", flush=True)
    if "bench" not in skip:
        bench = [sys.executable, "-m", "grader", "bench", *(arguments.names or ["--all"]), "--device", "cuda"]
        failed += subprocess.run([*bench, "--record"]).returncode
        print(f"timed at {time.monotonic() - start:.0f} s", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
