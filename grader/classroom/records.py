"""Written results: results.json, junit.xml and feedback.txt for each student, and grades.csv for all.

Each file is written atomically, and results.json last: a student with that file is done.
"""

from __future__ import annotations

import json
import os
import xml.etree.ElementTree as ET
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from grader.classroom.cells import printable
from grader.classroom.submissions import Submission
from grader.classroom.worker import Graded
from grader.report.junit import junit_xml
from grader.report.terminal import as_text
from grader.setup.files import write_file
from grader.verdict import ERROR
from grader.verdict.wording.results import results


def write_student(
    out: Path,
    submission: Submission,
    key: str,
    wanted: list[str],
    graded: Graded,
    remarks: list[str],
    unchanged: Sequence[str] = (),
) -> None:
    """Write the three files of a student.

    ``key`` identifies what was graded, and how. ``unchanged``: the exercises of which the student handed in the
    skeleton.
    """
    folder, verdicts = out / submission.folder_name, graded.verdicts
    missing = [name for name in wanted if name not in {verdict.exercise for verdict in verdicts}]
    data = {
        "student": submission.student,
        "submission": submission.path.name,
        "key": key,
        "refused": submission.refused,
        "missing": missing,
        "remarks": remarks,
        "unchanged": list(unchanged),
        "references": [incident.reference for incident in graded.incidents],
        "score": sum(verdict.score for verdict in verdicts),
        "verdicts": [results(verdict) for verdict in verdicts],
    }
    suites = ET.Element("testsuites", name=submission.folder_name)
    for verdict in verdicts:
        suites.extend(ET.fromstring(junit_xml(verdict).encode()))
    parts = [f"Submission: {printable(submission.path.name)}", ""]
    if submission.refused:
        parts.append(f"The submission was not graded: {submission.refused}.")
    parts += [as_text(verdict) for verdict in verdicts]
    parts += [f"There is no file for {name}." for name in missing]
    parts += [f"{remark[0].upper()}{remark[1:]}." for remark in remarks]
    write_file(
        folder / "junit.xml", '<?xml version="1.0" encoding="utf-8"?>\n' + ET.tostring(suites, encoding="unicode")
    )
    write_file(folder / "feedback.txt", "\n".join(parts) + "\n")
    write_file(folder / "results.json", json.dumps(data, indent=1, allow_nan=False) + "\n")


class _KeptStage(msgspec.Struct):
    status: Literal["passed", "failed", "skipped", "error"]


class _KeptVerdict(msgspec.Struct):
    exercise: str
    score: float
    stages: list[_KeptStage]


class _Kept(msgspec.Struct):
    """The fields of results.json that a later run reads."""

    student: str
    submission: str
    key: str
    refused: str
    missing: list[str]
    remarks: list[str]
    references: list[str]
    score: float
    verdicts: list[_KeptVerdict]
    unchanged: list[str]


def read_student(out: Path, submission: Submission) -> dict[str, Any] | None:
    """Return the stored results of a student; None if results.json is missing or invalid."""
    try:
        data: dict[str, Any] = json.loads((out / submission.folder_name / "results.json").read_text(encoding="utf-8"))
        msgspec.convert(data, _Kept)
    except (OSError, ValueError, RecursionError, msgspec.ValidationError):
        return None
    return data


def could_not_grade(result: Mapping[str, Any]) -> bool:
    """Return whether the grader itself failed for a student, who is then graded again."""
    return bool(result.get("references")) or any(
        stage["status"] == ERROR for verdict in result["verdicts"] for stage in verdict["stages"]
    )


def remove_unfinished(out: Path) -> None:
    """Remove temporary files of runs that were killed."""
    for path in [*out.glob(".*"), *out.glob("*/.*")]:
        writer = path.suffix[1:]
        if writer.isdigit() and not is_running(int(writer)):
            path.unlink(missing_ok=True)


def is_running(process: int) -> bool:
    """Return whether a process exists, whoever owns it."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        pass
    return True
