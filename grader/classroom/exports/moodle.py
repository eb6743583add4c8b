"""Moodle's assignment: "Upload grading worksheet" and "Upload multiple feedback files in a zip".

Moodle reads the worksheet by the columns *Identifier* ("Participant 1234"), *Grade* and *Last modified (grade)*. It
ignores rows of unknown participants, empty grades and grades above the maximum (moodle/moodle:
mod/assign/feedback/offline/importgradeslib.php and locallib.php; docs.moodle.org, "Assignment settings"). A path in the
zip begins with a folder ``NAME_1234_assignfeedback_file_``: the second part is the participant's number, the third and
fourth name the plugin, and the rest is the file (mod/assign/feedback/file/importziplib.php). Moodle's archive has
submissions in folders ``NAME_1234_assignsubmission_file_``; these names identify the participants.

If students are identified by their e-mail address, the gradebook's own import maps grades by that column
(docs.moodle.org, "Grade import").
"""

from __future__ import annotations

import re
from pathlib import Path

from grader.classroom.cells import no_formula
from grader.classroom.csv_files import read_table, table
from grader.classroom.exports.feedback import Export, gradable, page
from grader.classroom.gradebook import GradeBook
from grader.classroom.policy import Grade
from grader.classroom.submissions import MOODLE
from grader.course.learner.zipped import zipped
from grader.setup.errors import GraderError
from grader.setup.files import write_file

_PARTICIPANT = re.compile(r"\D*(\d+)")
"""The participant's number. Moodle writes a word before the number, such as "Participant", in the site's language."""
_EMAIL = re.compile(r"[^@\s]+@[^@\s]+\.[^@\s]+")
NAMES = ("Identifier", "Grade", "Last modified (grade)")
HINT = (
    'In Moodle: the assignment, "Download grading worksheet" (enable it below "Feedback types", and English as the '
    "language)."
)


def export(book: GradeBook, out: Path, target: Path, worksheet: Path | None = None) -> Export:
    """Write the two files into the folder ``target``."""
    made = Export()
    grades = gradable(book, made)
    by_number: dict[str, Grade] = {}
    for grade in grades:
        if (number := _number(grade)) and by_number.setdefault(number, grade) is not grade:
            raise GraderError(
                f"{by_number[number].student!r} and {grade.student!r} are submissions of one participant of Moodle, "
                "with two grades",
                "Put this student's files into one folder, named like one of them, and grade the class again.",
            )
    by_email = {grade.student: grade for grade in grades if _EMAIL.fullmatch(grade.student)}
    if not by_number and by_email and worksheet is None:
        _gradebook(by_email, target, made)
        return made
    for grade in grades:
        if not _number(grade):
            made.left_out.append(f"{grade.student!r} has no participant number: it is not in a folder from Moodle")
    if not by_number:
        raise GraderError(
            "no submission has a name from Moodle: NAME_1234_assignsubmission_file_",
            'Grade the archive from "Download all submissions", or name submissions by e-mail addresses.',
        )
    rows = _filled(worksheet, by_number, book.maximum, made) if worksheet else _fresh(by_number, made)
    feedback = {
        f"{_plain(_name(grade))}_{number}_assignfeedback_file_/feedback.html": page(out, grade)
        for number, grade in by_number.items()
    }
    for name, content in (("moodle-grades.csv", table(rows)), ("moodle-feedback.zip", zipped(feedback))):
        write_file(target / name, content)
        made.files.append(target / name)
    return made


def _number(grade: Grade) -> str:
    match = MOODLE.match(grade.student)
    return str(int(match["number"])) if match else ""


def _name(grade: Grade) -> str:
    match = MOODLE.match(grade.student)
    return match["name"] if match else grade.student


def _plain(name: str) -> str:
    """Return a name that is safe in a path. Moodle ignores this part of the path."""
    return re.sub(r"[^\w .'-]|^\.+|_", "-", name.encode(errors="replace").decode()) or "student"


def _fresh(by_number: dict[str, Grade], made: Export) -> list[list[str]]:
    """Create a worksheet.

    It has no times of earlier grades, so Moodle overwrites those only if the user ticks the option for it.
    """
    rows = [["Identifier", "Full name", "Grade", "Last modified (grade)"]]
    for number, grade in sorted(by_number.items(), key=lambda item: int(item[0])):
        rows.append([f"Participant {number}", no_formula(_name(grade)), f"{grade.total:g}", "-"])
        made.graded += 1
    return rows


def _filled(path: Path, by_number: dict[str, Grade], maximum: float, made: Export) -> list[list[str]]:
    """Return the rows of the worksheet that Moodle exported, with the grades filled in."""
    rows = read_table(path, NAMES, HINT)
    head = rows[0]
    identifier, column = head.index("Identifier"), head.index("Grade")
    most = head.index("Maximum Grade") if "Maximum Grade" in head else -1
    left = dict(by_number)
    for row in rows[1:]:
        match = _PARTICIPANT.fullmatch(row[identifier].strip())
        grade = left.pop(str(int(match[1])), None) if match else None
        if grade is None:
            continue
        limit = _number_in(row[most]) if most >= 0 else None
        if limit is not None and limit != maximum:
            raise GraderError(
                f"{path}: the assignment has {limit:g} points in Moodle, but the class was graded out of {maximum:g}",
                "Set the assignment's maximum grade in Moodle and download the worksheet again, or set [points] in the "
                "instructor's file.",
            )
        if limit is not None and grade.total > limit:
            raise GraderError(
                f"{path}: {row[identifier]} has {grade.total:g} points, but the assignment allows only {limit:g}",
                "Moodle would ignore the row. Set the assignment's maximum grade, then download the worksheet again.",
            )
        row[column] = f"{grade.total:g}"
        made.graded += 1
    made.left_out += [f"{grade.student!r} is not in {path.name}" for grade in left.values()]
    return rows


def _number_in(text: str) -> float | None:
    try:
        return float(text.replace(",", "."))
    except ValueError:
        return None


def _gradebook(by_email: dict[str, Grade], target: Path, made: Export) -> None:
    rows = [["Email address", "Grade"]]
    rows += [[no_formula(email), f"{grade.total:g}"] for email, grade in sorted(by_email.items())]
    made.graded = len(by_email)
    write_file(target / "moodle-gradebook.csv", table(rows))
    made.files.append(target / "moodle-gradebook.csv")
    made.left_out.append("feedback files: Moodle needs participant numbers, which e-mail addresses do not have")
