"""Stores and reads recorded times: a JSON file next to each lesson for each GPU on which they were measured."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import msgspec

from grader.course import Entry
from grader.judge.timing.bench import BenchReport
from grader.judge.timing.sources import FLAGS, digests
from grader.setup.errors import GraderError
from grader.setup.files import replace_file

RECORD_VERSION = 1
RECORDS = {"H200": "h200.json", "H100": "h100.json"}
"""The GPUs whose times the lessons show, each with the name of its file next to a lesson. The first is preferred."""


def record_name(gpu: str) -> str | None:
    """Return the name of the file for a GPU's times; None if the lessons show no times of this GPU."""
    return next((file for name, file in RECORDS.items() if re.search(rf"\b{name}\b", gpu)), None)


def check_recordable(device: str, gpu: str, file: Path | None = None) -> None:
    """Raise GraderError if times of this device must not be recorded.

    Files next to the lessons are only for the GPUs in ``RECORDS``.
    """
    if device != "cuda":
        raise GraderError("only times of a real GPU can be recorded", "Use --device cuda.")
    if file is None and record_name(gpu) is None:
        raise GraderError(
            f"the lessons show figures of an {' or an '.join(RECORDS)}, but this GPU is an {gpu}",
            "Record the times in another file: --record-in FILE.",
        )


def record(report: BenchReport, entry: Entry, file: Path | None = None) -> Path:
    """Store a report next to the day's lesson, or in ``file``. It replaces an earlier report of the exercise."""
    check_recordable(report.device, report.machine.device, file)
    path = file or entry.root / "lessons" / entry.day / str(record_name(report.machine.device))
    content: dict[str, Any] = {"version": RECORD_VERSION, "exercises": {}}
    try:
        if path.exists():
            known = json.loads(path.read_text(encoding="utf-8"))
            if known.get("version") == RECORD_VERSION:
                content = known
        kept = report.to_dict() | {"sources": sources(entry)}
        for timing in kept["timings"]:
            for name, value in timing.items():
                if isinstance(value, float):
                    timing[name] = float(f"{value:.5g}")
        content["exercises"][entry.name if file else entry.variable] = kept
        content["exercises"] = dict(sorted(content["exercises"].items()))
        replace_file(path, f"{json.dumps(content, indent=1)}\n".encode())
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise GraderError(f"cannot record in {path}: {error}") from error
    return path


def sources(entry: Entry) -> dict[str, str]:
    """Return the digest of an exercise's solution, and nvcc's flags: its times depend on both."""
    return digests(entry.root, (FLAGS, f"solutions/{entry.name}.cu"))


def read_reports(file: Path) -> dict[str, BenchReport]:
    """Return the reports that ``record`` stored in ``file``, by exercise; none if there is no such file."""
    try:
        content = json.loads(file.read_text(encoding="utf-8"))["exercises"]
        return msgspec.convert(content, dict[str, BenchReport])
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise GraderError(
            f"{file} cannot be read: {error}", "Delete the file: the times are measured again."
        ) from error


def recorded(entry: Entry) -> BenchReport | None:
    """Return the report that ``record`` stored for an exercise, that of the preferred GPU if there are several."""
    kept = recorded_day(entry.root / "lessons" / entry.day).get(entry.variable)
    try:
        return None if kept is None else msgspec.convert(kept, BenchReport)
    except msgspec.ValidationError as error:
        raise _unreadable(entry.root / "lessons" / entry.day, error) from error


def recorded_day(folder: Path) -> dict[str, Any]:
    """Return the reports that are stored next to a lesson, by exercise. Prefer the report of the preferred GPU."""
    found: dict[str, Any] = {}
    for file in reversed(RECORDS.values()):
        path = folder / file
        try:
            found |= json.loads(path.read_text(encoding="utf-8"))["exercises"]
        except FileNotFoundError:
            continue
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise _unreadable(path, error) from error
    return found


def _unreadable(path: Path, error: Exception) -> GraderError:
    return GraderError(f"{path} cannot be read: {error}", "Write the file again with `grader bench --record`.")
