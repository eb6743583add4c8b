"""Recorded times: a JSON file beside each lesson, with the name of the GPU that they were measured on."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import msgspec

from grader.course import Entry
from grader.judge.timing.bench import BenchReport
from grader.judge.timing.sources import digests
from grader.setup.errors import GraderError

RECORD_VERSION = 1
RECORD, RECORDED_GPU = "h200.json", "H200"
"""The name of the file beside each lesson, and the GPU of its figures."""


def check_recordable(device: str, gpu: str, file: Path | None = None) -> None:
    """Raise unless the device's figures may be recorded: the files beside the lessons hold figures of one GPU."""
    if device != "cuda":
        raise GraderError("only times of a real GPU are recorded", "Use --device cuda.")
    if file is None and not re.search(rf"\b{RECORDED_GPU}\b", gpu):
        raise GraderError(
            f"lessons/*/{RECORD} holds figures of an {RECORDED_GPU}, but this GPU is an {gpu}",
            "Record them in another file: --record-in FILE.",
        )


def record(report: BenchReport, entry: Entry, file: Path | None = None) -> Path:
    """Store a report beside the day's lesson, or in another file, in place of the exercise's earlier report."""
    check_recordable(report.device, report.machine.device, file)
    path = file or entry.root / "lessons" / entry.day / RECORD
    content: dict[str, Any] = {"version": RECORD_VERSION, "exercises": {}}
    try:
        if path.exists():
            known = json.loads(path.read_text(encoding="utf-8"))
            if known.get("version") == RECORD_VERSION:
                content = known
        kept = report.to_dict() | {"sources": digests(entry.root, (f"solutions/{entry.name}.cu",))}
        for timing in kept["timings"]:
            for name, value in timing.items():
                if isinstance(value, float):
                    timing[name] = float(f"{value:.5g}")
        content["exercises"][entry.name if file else entry.variable] = kept
        content["exercises"] = dict(sorted(content["exercises"].items()))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise GraderError(f"cannot record in {path}: {error}") from error
    return path


def recorded(entry: Entry) -> BenchReport | None:
    """Return the report that ``record`` stored for an exercise, or None."""
    path = entry.root / "lessons" / entry.day / RECORD
    try:
        kept = json.loads(path.read_text(encoding="utf-8"))["exercises"].get(entry.variable)
        if kept is None:
            return None
        return msgspec.convert(kept, BenchReport)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, msgspec.ValidationError) as error:
        raise GraderError(
            f"{path} cannot be read: {error}", "Write the file again with `grader bench --record`."
        ) from error
