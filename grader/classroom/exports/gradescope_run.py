"""Grade one submission inside Gradescope: ``python -m grader.classroom.exports.gradescope_run /autograder``.

Reads submission/ and submission_metadata.json, and writes results/results.json as documented at
gradescope-autograders.readthedocs.io ("Autograder Specifications", "Submission Metadata"): the score, a test for each
exercise, the student's feedback, and a leaderboard entry for students who opted in. An error of the machine or of the
instructor's file gives no grade: it is printed on standard output for instructors, and Gradescope reports the missing
results.json.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from grader.classroom import leaderboard, policy
from grader.classroom.cells import printable
from grader.classroom.exports.gradescope import COURSE, INSTRUCTOR, SETTINGS, Settings
from grader.classroom.incidents import LOG
from grader.classroom.instructor import Instructions, read_instructions
from grader.classroom.result import StudentResult
from grader.classroom.session import Session
from grader.classroom.stored import Stored, stored, text_at_home
from grader.classroom.submissions import Submission, read_submission
from grader.classroom.worker import require_sandbox
from grader.course import Course
from grader.report.terminal import as_text
from grader.setup.errors import GraderError
from grader.setup.files import write_file
from grader.verdict import ERROR, PASSED, Verdict
from grader.verdict.wording import stages


class _Assignment(msgspec.Struct):
    due_date: datetime | None = None


class _Metadata(msgspec.Struct):
    """The fields of submission_metadata.json that the grader reads."""

    created_at: datetime | None = None
    assignment: _Assignment = msgspec.field(default_factory=_Assignment)


def main(arguments: Sequence[str]) -> int:
    """Run the command line; return 0 if results.json was written, else 2."""
    try:
        run(Path(arguments[0] if arguments else "/autograder"))
    except GraderError as error:
        print(f"error: {error}")
        return 2
    return 0


def run(root: Path) -> None:
    """Grade the submission below Gradescope's folder."""
    began = time.monotonic()
    source = root / "source"
    course = Course(source / COURSE)
    settings = _settings(source / SETTINGS)
    instructions = Instructions()
    if (source / INSTRUCTOR).is_file():
        instructions = read_instructions(source / INSTRUCTOR, course)
    handed_in = _handed_in(instructions.policy, _metadata(root / "submission_metadata.json"))
    danger = "there is no sandbox: a submission could read the instructor's file and write its own results"
    require_sandbox(settings.unsafe, danger, "`grader export gradescope --unsafe`")
    submission = read_submission("submission", root / "submission")
    with tempfile.TemporaryDirectory() as folder:
        session = Session(course, [submission], Path(folder), instructions, tuple(settings.exercises), workers=1)
        result = session.run(lambda *_: None)[0]
        log = Path(folder) / LOG
        if result.failed:
            said = [stages.text(s) for verdict in result.verdicts for s in verdict.stages if s.status == ERROR]
            said += [log.read_text(encoding="utf-8")] if log.exists() else []
            raise GraderError("the grader could not grade this submission", "\n".join(said))
    made = _results(course, settings, instructions, submission, result, handed_in)
    made["execution_time"] = round(time.monotonic() - began)
    (root / "results").mkdir(exist_ok=True)
    write_file(root / "results/results.json", json.dumps(made, indent=1) + "\n")


def _results(
    course: Course,
    settings: Settings,
    instructions: Instructions,
    submission: Submission,
    result: StudentResult,
    handed_in: tuple[datetime, datetime] | None,
) -> dict[str, Any]:
    """Return the content of results.json."""
    rules = instructions.policy
    maxima = rules.maxima({name: float(course.find(name).points) for name in settings.exercises})
    grade = policy.grade(rules, result, submission.folder_name, maxima, handed_in)
    student = stored(submission, result, grade, maxima)
    verdicts = {verdict.exercise: verdict for verdict in student.verdicts}
    output = result.notes + [f"{reason[0].upper()}{reason[1:]}." for reason in grade.reasons]
    return {
        "score": grade.total,
        "output": printable_lines("\n".join(output)),
        "output_format": "text",
        "visibility": settings.visibility,
        "stdout_visibility": "hidden",
        "tests": [
            _test(number, name, verdicts.get(name), grade.points.get(name, 0.0), maximum, rules.stages.get(name))
            for number, (name, maximum) in enumerate(maxima.items(), 1)
        ],
        "leaderboard": _leaderboard(student) if submission.nickname else [],
    }


def _test(
    number: int,
    name: str,
    verdict: Verdict | None,
    points: float,
    maximum: float,
    stages: Mapping[str, float] | None,
) -> dict[str, Any]:
    if verdict is None:
        text = "The submission has no file for this exercise."
    else:
        text = as_text(verdict) + text_at_home([verdict])
        if stages:
            earned = [
                f"{stage.name} {stages[stage.name] if stage.status == PASSED else 0:g} of {stages[stage.name]:g}"
                for stage in verdict.stages
                if stage.name in stages
            ]
            text = f"Points: {', '.join(earned)}\n{text}"
    return {
        "number": str(number),
        "name": name,
        "score": points,
        "max_score": maximum,
        "status": "passed" if verdict is not None and verdict.passed else "failed",
        "output": printable_lines(text),
        "output_format": "text",
    }


def _leaderboard(student: Stored) -> list[dict[str, Any]]:
    """Return the entries of Gradescope's leaderboard. Gradescope itself asks students for display names."""
    rows: list[dict[str, Any]] = []
    for verdict in student.verdicts:
        counted = leaderboard.traffic_of(verdict)
        if verdict.passed and counted is not None:
            rows.append({"name": f"{verdict.title}: bytes", "value": counted[0], "order": "asc"})
        if verdict.passed:
            for size, microseconds, _ in leaderboard.times_of(verdict):
                rows.append({"name": f"{verdict.title}: us, {size}", "value": microseconds, "order": "asc"})
    return rows


def _handed_in(rules: policy.Policy, metadata: _Metadata) -> tuple[datetime, datetime] | None:
    """Return the submission time and the due time. A due time in the instructor's file has priority."""
    if rules.late is None:
        return None
    due = rules.late.due or metadata.assignment.due_date
    if metadata.created_at is None or due is None:
        raise GraderError(
            "the instructor's file has [late], but submission_metadata.json lacks created_at or assignment.due_date",
            "Set a due date for the assignment in Gradescope, or due = ... in [late].",
        )
    if metadata.created_at.tzinfo is None or due.tzinfo is None:
        raise GraderError("submission_metadata.json has times without a time zone")
    return metadata.created_at, due


def _settings(path: Path) -> Settings:
    try:
        return msgspec.json.decode(path.read_bytes(), type=Settings)
    except (OSError, msgspec.DecodeError) as error:
        raise GraderError(
            f"{path} cannot be read: {error}", "Create the archive again with `grader export gradescope`."
        ) from error


def _metadata(path: Path) -> _Metadata:
    """Return the metadata. Without the file, return empty metadata, because only [late] needs it."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=_Metadata)
    except FileNotFoundError:
        return _Metadata()
    except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
        raise GraderError(f"{path} cannot be read: {error}") from error


def printable_lines(text: str) -> str:
    """Return a text without control characters except line ends."""
    return "\n".join(printable(line) for line in text.split("\n"))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
