"""Run every solution under the four tools of compute-sanitizer and record what they say.

``python -m tests.gpu.sanitize --out FILE.json [--record] [NAME...]``

Each solution and tool has a process of its own, several at a time. A tool may slow a kernel down a thousandfold, so the
cases are launched smallest first and no new one after ``--seconds``: the tool then ends with its summary, and the
record says how many cases it saw. With ``--record`` the rows also go to lessons/can_i_believe_this/sanitizer_h200.json,
each in place of its earlier one.
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
from tests.gpu.launch_solutions import chosen

TOOLS = ("memcheck", "synccheck", "initcheck", "racecheck")
"""The quickest first."""

RECORD = Path("lessons") / "can_i_believe_this" / "sanitizer_h200.json"


def run_tool(tool: str, name: str, seconds: float) -> dict[str, Any]:
    """One tool over one solution: how many cases were launched, and the tool's errors."""
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
    """Put the rows of solutions and tools in place of their earlier ones."""
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
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def main() -> int:
    """Build first, so that the tools do not watch nvcc.

    Then one tool after another, each over several solutions at a time.
    """
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--record", action="store_true", help="keep the rows for the lesson can_i_believe_this")
    parser.add_argument("--seconds", type=float, default=25.0, help="start no case of a solution after this")
    parser.add_argument("--total", type=float, default=1e9, help="start no run after this many seconds")
    parser.add_argument("--jobs", type=int, default=5, help="runs at a time")
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
            arguments.out.write_text(json.dumps(rows, indent=1) + "\n")  # whatever stops us, what is known is kept
    if arguments.record and rows:
        record(rows, course_root() / RECORD)
    for name in left_out:
        print(f"NOT RUN, no time was left: {name}")
    print(f"{sum(row['clean'] for row in rows)} of {len(runs)} runs clean, {time.monotonic() - began:.0f} s")
    return 0 if rows and not left_out and all(row["clean"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
