"""Errors of every solution compared with float64, by dtype, over all cases of its exercise.

``python -m tests.gpu.errors [--device cuda] [--record] [NAME...]`` runs the solutions on the simulator, or on a GPU,
and prints the largest error and the tolerance for each dtype. With ``--record`` it writes
lessons/can_i_believe_this/errors_simulator.json or errors_gpu.json, which the lesson shows. If names are given, or if
the GPU cannot run all solutions, only the rows of the measured ones are replaced.
"""

from __future__ import annotations

import argparse
import datetime
import json
import sys
from pathlib import Path
from typing import Any

from grader.course import Course, Entry, course_root
from grader.judge import check
from grader.judge.timing.sources import write_record
from grader.verdict import PASSED
from tests.gpu.counted import runnable
from tests.gpu.launch_solutions import chosen

SEED = 1


def errors_of(entry: Entry, device: str) -> list[dict[str, Any]]:
    """Return a row for each dtype: the largest errors over all cases and all floating-point outputs."""
    verdict = check(entry, entry.solution, device=device, seed=SEED, stages=["builds", "correct"])
    exercise = entry.load()
    rows: dict[str, dict[str, Any]] = {}
    for stage in verdict.stages:
        for case in stage.cases:
            row = rows.setdefault(
                case.dtype,
                {"exercise": entry.name, "dtype": case.dtype, "cases": 0, "passed": 0, "norm_error": 0.0, "share": 0.0},
            )
            row["cases"] += 1
            row["passed"] += case.status == PASSED
            for output in case.outputs:
                if exercise.outputs[output.name].scratch or output.dtype.startswith("i"):
                    continue  # integers have no rounding error
                row["norm_error"] = max(row["norm_error"], output.norm_error)
                row["share"] = max(row["share"], output.max_ratio)
                row["tolerance"] = output.tolerance
    order = {dtype: place for place, dtype in enumerate(exercise.dtypes)}
    return sorted(rows.values(), key=lambda row: order[row["dtype"]])


def main() -> int:
    """Measure the chosen solutions; return 1 if a case failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="parts of exercise names (default: all)")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="cpu (the simulator) or cuda")
    parser.add_argument("--record", action="store_true", help="write the figures for the lesson can_i_believe_this")
    parser.add_argument("--out", type=Path, help="write the figures to this file")
    arguments = parser.parse_args()
    print(f"{'solution':52}{'dtype':6}{'cases':>5}  {'error':>8} {'tolerated':>9}  largest element")
    rows: list[dict[str, Any]] = []
    gpu = arguments.device == "cuda"
    entries = chosen(arguments.names)
    if gpu:
        entries = list(runnable(entries))
    for entry in entries:
        for row in errors_of(entry, arguments.device):
            row.update({name: float(f"{value:.3g}") for name, value in row.items() if isinstance(value, float)})
            rows.append(row)
            text = f"{row['exercise']:52}{row['dtype']:6}{row['cases']:5}  "
            if "tolerance" in row:
                text += f"{row['norm_error']:8.1e} {row['tolerance']:9.1e}  {row['share']:.0%} of what is allowed"
            else:
                text += "whole numbers: exact"
            print(text + ("" if row["passed"] == row["cases"] else "   FAILED"), flush=True)
    places = {entry.name: place for place, entry in enumerate(Course().exercises)}
    content: dict[str, Any] = {
        "version": 1,
        "device": "the simulator",
        "seed": SEED,
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d"),
        "command": "python -m tests.gpu.errors" + (" --device cuda" if gpu else "") + " --record",
        "rows": rows,
    }
    if gpu:
        import torch

        content["device"] = torch.cuda.get_device_name()
    where = [arguments.out] if arguments.out else []
    if arguments.record:
        name = "errors_gpu.json" if gpu else "errors_simulator.json"
        where.append(course_root() / "lessons" / "can_i_believe_this" / name)
    for path in where:
        some = len(entries) < len(chosen([]))
        kept = json.loads(path.read_text(encoding="utf-8"))["rows"] if some and path.exists() else []
        both = [*(row for row in kept if row["exercise"] not in {new["exercise"] for new in rows}), *rows]
        both.sort(key=lambda row: places.get(row["exercise"], -1))  # sorting is stable, so the dtypes keep their order
        renewed = tuple(f"solutions/{row['exercise']}.cu" for row in rows) if some else None
        write_record(path, {**content, "rows": both}, course_root(), renewed)
    return 0 if rows and all(row["passed"] == row["cases"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
