"""Figures that were kept: beside each lesson those of one GPU, of which the file says the name."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import msgspec

from grader.course import Entry
from grader.judge.timing.bench import BenchReport
from grader.setup.errors import GraderError

RECORD_VERSION = 1
RECORD, RECORDED_GPU = "h200.json", "H200"
"""Beside each lesson, and of which GPU it is."""


def check_recordable(device: str, gpu: str, file: Path | None = None) -> None:
    """Raise unless a device's figures may be recorded: the records beside the lessons are of one GPU."""
    if device != "cuda":
        raise GraderError("only times of a real GPU are recorded", "Use --device cuda.")
    if file is None and not re.search(rf"\b{RECORDED_GPU}\b", gpu):
        raise GraderError(
            f"lessons/*/{RECORD} holds figures of an {RECORDED_GPU}; this is an {gpu}",
            "--record-in FILE keeps them in a file of their own.",
        )


def record(report: BenchReport, entry: Entry, file: Path | None = None) -> Path:
    """Keep a report beside the day's lesson, or in a file of one's own, in place of the exercise's earlier one."""
    check_recordable(report.device, report.machine.device, file)
    path = file or entry.root / "lessons" / entry.day / RECORD
    content: dict[str, Any] = {"version": RECORD_VERSION, "exercises": {}}
    try:
        if path.exists():
            known = json.loads(path.read_text(encoding="utf-8"))
            if known.get("version") == RECORD_VERSION:
                content = known
        kept = report.to_dict()
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
    """Return the report that ``record`` kept for an exercise; None if there is none."""
    path = entry.root / "lessons" / entry.day / RECORD
    try:
        kept = json.loads(path.read_text(encoding="utf-8"))["exercises"].get(entry.variable)
        if kept is None:
            return None
        return msgspec.convert(kept, BenchReport)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, msgspec.ValidationError) as error:
        raise GraderError(f"{path} cannot be read: {error}", "It is written by `grader bench --record`.") from error
