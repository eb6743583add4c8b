"""Run every solution under the four tools of compute-sanitizer and record their reports.

``python -m tests.gpu.sanitize --out FILE.json [--record] [NAME...]``

Each solution and tool has a separate process, and several run at a time. A tool may slow a kernel down a thousandfold,
so the smallest cases are launched first, and no case starts after ``--seconds``. The tool then prints its summary, and
the record has the number of launched cases. With ``--record``, the rows also replace their earlier versions in
lessons/can_i_believe_this/sanitizer_h200.json.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from grader.course import course_root
from grader.judge.timing.sources import write_record
from tests.gpu.launch_solutions import chosen

TOOLS = ("memcheck", "synccheck", "initcheck", "racecheck")
"""The tools of compute-sanitizer, fastest first."""

RECORD = Path("lessons") / "can_i_believe_this" / "sanitizer_h200.json"


def run_tool(tool: str, name: str, seconds: float) -> dict[str, Any]:
    """Run one tool on one solution; return the number of launched cases and the tool's errors."""
    command = ["compute-sanitizer", "--tool", tool, "--print-limit", "20", sys.executable]
    command += ["-m", "tests.gpu.launch_solutions", "--seconds", f"{seconds:g}", name]
    began = time.monotonic()
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=3 * seconds + 60)
        text = done.stdout + done.stderr
    except subprocess.TimeoutExpired as expired:
        text = (expired.stdout or b"").decode() + f"\nFAILED: a single case took over {2 * seconds:.0f} s"
    return {"exercise": name, "tool": tool, "seconds": round(time.monotonic() - began, 1), **read(text)}


def read(text: str) -> dict[str, Any]:
    """Return a run's results: cases launched, failures, the tool's summary and its errors.

    ``clean`` if there are none.
    """
    launched = re.search(r"^launched \S+: (\d+) of (\d+) cases", text, re.MULTILINE)
    summaries = re.findall(r"(?:ERROR|RACECHECK) SUMMARY: .*", text)
    failed = re.findall(r"^FAILED.*", text, re.MULTILINE)
    cases, of = (int(launched[1]), int(launched[2])) if launched else (0, 0)
    summary = summaries[-1] if summaries else "no summary: the tool did not finish"
    return {
        "cases": cases,
        "of": of,
        "clean": bool(cases and not failed and re.search(r"SUMMARY: 0 (errors|hazards)", summary)),
        "failed": failed,
        "summary": summary,
        "errors": [line for line in text.splitlines() if line.startswith("=========")][:100],
    }


def record(rows: list[dict[str, Any]], path: Path) -> None:
    """Replace the rows of these solutions and tools in the record."""
    import torch

    kept = json.loads(path.read_text(encoding="utf-8"))["rows"] if path.exists() else []
    short = [{name: value for name, value in row.items() if name not in ("errors", "failed")} for row in rows]
    new = {(row["exercise"], row["tool"]): row for row in [*kept, *short]}
    content = {
        "version": 1,
        "gpu": torch.cuda.get_device_name(),
        "command": "python -m tests.gpu.sanitize --record",
        "rows": [new[key] for key in sorted(new)],
    }
    renewed = tuple({f"solutions/{row['exercise']}.cu" for row in rows})
    write_record(path, content, course_root(), renewed)


def main() -> int:
    """Build first, so that the tools do not run nvcc.

    Then run one tool after another, each on several solutions at a time.
    """
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--record", action="store_true", help="write the rows for the lesson can_i_believe_this")
    parser.add_argument(
        "--seconds", type=float, default=25.0, help="time limit in seconds; no case of a solution starts after it"
    )
    parser.add_argument("--total", type=float, default=1e9, help="time limit in seconds; no run starts after it")
    parser.add_argument("--jobs", type=int, default=5, help="number of parallel runs")
    arguments = parser.parse_args()
    began = time.monotonic()
    subprocess.run([sys.executable, "-m", "tests.gpu.launch_solutions", "--build-only", *arguments.names], check=False)
    rows: list[dict[str, Any]] = []
    left_out: list[str] = []

    def one(tool: str, name: str) -> dict[str, Any] | None:
        late = time.monotonic() - began > arguments.total
        return None if late else run_tool(tool, name, arguments.seconds)

    with ThreadPoolExecutor(arguments.jobs) as pool:
        runs = {
            pool.submit(one, tool, entry.name): f"{tool} {entry.name}"
            for tool in TOOLS
            for entry in chosen(arguments.names)
        }
        for future in as_completed(runs):
            row = future.result()
            if row is None:
                left_out.append(runs[future])
                continue
            rows.append(row)
            verdict = "clean" if row["clean"] else "NOT CLEAN"
            print(
                f"{runs[future]:60} {row['cases']:3} of {row['of']:3} cases {row['seconds']:6.1f} s  {verdict}",
                flush=True,
            )
            for line in [] if row["clean"] else [row["summary"], *row["failed"]]:
                print(f"    {line}", flush=True)
            # after each run, so that the file has the rows of a command that was stopped
            arguments.out.write_text(json.dumps(rows, indent=1) + "\n")
    if arguments.record and rows:
        record(rows, course_root() / RECORD)
    for name in left_out:
        print(f"NOT RUN, no time was left: {name}")
    print(f"{sum(row['clean'] for row in rows)} of {len(runs)} runs clean, {time.monotonic() - began:.0f} s")
    return 0 if rows and not left_out and all(row["clean"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
