"""Written results: results.json and junit.xml for each student.

Each file is written atomically, and results.json last: a student with that file is done.
"""

from __future__ import annotations

import json
import os
import xml.etree.ElementTree as ET
from pathlib import Path

import msgspec

from grader.classroom.result import StudentResult
from grader.classroom.submissions import Submission
from grader.report.junit import junit_xml
from grader.setup.files import write_file
from grader.verdict.wording.results import results


def write_student(out: Path, submission: Submission, result: StudentResult) -> None:
    """Write the files of a student."""
    folder, verdicts = out / submission.folder_name, result.verdicts
    data = msgspec.structs.asdict(result)
    data |= {"score": result.score, "verdicts": [results(verdict) for verdict in verdicts]}
    suites = ET.Element("testsuites", name=submission.folder_name)
    for verdict in verdicts:
        suites.extend(ET.fromstring(junit_xml(verdict).encode()))
    write_file(
        folder / "junit.xml", '<?xml version="1.0" encoding="utf-8"?>\n' + ET.tostring(suites, encoding="unicode")
    )
    write_file(folder / "results.json", json.dumps(data, indent=1, allow_nan=False) + "\n")


def read_student(out: Path, submission: Submission) -> StudentResult | None:
    """Return the stored results of a student; None if results.json is missing or invalid."""
    try:
        data = json.loads((out / submission.folder_name / "results.json").read_text(encoding="utf-8"))
        return msgspec.convert(data, StudentResult, strict=False)
    except (OSError, ValueError, RecursionError):
        return None


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
