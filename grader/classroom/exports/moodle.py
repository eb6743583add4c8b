"""Moodle's assignment: "Upload grading worksheet" and "Upload multiple feedback files in a zip".

Moodle reads the worksheet by the columns *Identifier* ("Participant 1234"), *Grade* and *Last modified (grade)*. It
ignores rows of unknown participants, empty grades and grades above the maximum (moodle/moodle:
mod/assign/feedback/offline/importgradeslib.php and locallib.php; docs.moodle.org, "Assignment settings"). A path in the
zip begins with a folder ``NAME_1234_assignfeedback_file_``: the second part is the participant's number, the third and
fourth name the plugin, and the rest is the file (mod/assign/feedback/file/importziplib.php). Moodle's archive has
submissions in folders ``NAME_1234_assignsubmission_file_``; these names identify the participants. In a group
assignment, they identify groups, and the number is a group's, which can equal that of any participant
(mod/assign/classes/downloader.php). The worksheet of a group assignment has a column *Group*.

If students are identified by their e-mail address, the gradebook's own import maps grades by that column
(docs.moodle.org, "Grade import").
"""

from __future__ import annotations

import re
from pathlib import Path

from grader.classroom.cells import no_formula
from grader.classroom.csv_files import number_in, read_table, table
from grader.classroom.exports.feedback import Export, feedback_file, gradable
from grader.classroom.gradebook import GradeBook
from grader.classroom.policy import GROUP, Grade
from grader.classroom.submissions import MOODLE, group_in_moodle
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
    """Write the files into the folder ``target``."""
    made = Export()
    grades = gradable(book, made)
    from_moodle = [grade for grade in grades if MOODLE.match(grade.student)]
    by_email = {grade.student: grade for grade in grades if _EMAIL.fullmatch(grade.student)}
    if not from_moodle and by_email and worksheet is None:
        _gradebook(by_email, target, made)
        return made
    if not from_moodle:
        raise GraderError(
            "no submission has a name from Moodle: NAME_1234_assignsubmission_file_",
            'Grade the archive from "Download all submissions", or name submissions by e-mail addresses and omit '
            "--worksheet.",
        )
    if worksheet is None:
        raise GraderError("--worksheet is missing: it lists the participants and groups of the assignment", HINT)
    for grade in grades:
        if not MOODLE.match(grade.student):
            made.left_out.append(f"{grade.student!r} has no participant number: it is not in a folder from Moodle")
    rows, feedback = _filled(worksheet, from_moodle, book.maximum, made)
    files = {
        f"{_plain(_name(grade))}_{number}_assignfeedback_file_/feedback.html": feedback_file(
            out, grade, "feedback.html"
        )
        for number, grade in feedback.items()
    }
    for name, content in (("moodle-grades.csv", table(rows)), ("moodle-feedback.zip", zipped(files))):
        write_file(target / name, content)
        made.files.append(target / name)
    return made


def _name(grade: Grade) -> str:
    match = MOODLE.match(grade.student)
    return match["name"] if match else grade.student


def _plain(name: str) -> str:
    """Return a name that is safe in a path. Moodle ignores this part of the path."""
    return re.sub(r"[^\w .'-]|^\.+|_", "-", name.encode(errors="replace").decode()) or "student"


def _filled(path: Path, grades: list[Grade], maximum: float, made: Export) -> tuple[list[list[str]], dict[str, Grade]]:
    """Return the rows of the worksheet with the grades filled in, and the grades by participant number."""
    rows = read_table(path, NAMES, HINT)
    head = rows[0]
    identifier, column = head.index("Identifier"), head.index("Grade")
    most = next((i for i, name in enumerate(head) if name.lower() == "maximum grade"), None)
    team = head.index(GROUP) if GROUP in head else None
    by_key = _by_key(grades, set() if team is None else {group_in_moodle(row[team]) for row in rows[1:]})
    found: dict[str, Grade] = {}
    for row in rows[1:]:
        participant = _PARTICIPANT.fullmatch(row[identifier].strip())
        if participant is None:
            continue
        number = str(int(participant[1]))
        grade = by_key.get(number)
        if team is not None:
            group = group_in_moodle(row[team])
            of_member = grade is not None and _name(grade).startswith(f"{group}-")  # Moodle before 4.1
            grade = by_key.get(f"group {group}", grade if of_member else None)
        if grade is None:
            continue
        limit = None if most is None else number_in(row[most])
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
        found[number] = grade
    made.graded = len(found)
    used = {grade.student for grade in found.values()}
    made.left_out += [f"{grade.student!r} is not in {path.name}" for grade in grades if grade.student not in used]
    return rows, found


def _by_key(grades: list[Grade], groups: set[str]) -> dict[str, Grade]:
    """Return the grades by participant number, or by group name for the submissions of ``groups``."""
    found: dict[str, Grade] = {}
    for grade in grades:
        match = MOODLE.match(grade.student)
        assert match
        number = str(int(match["number"])) if match["number"] else grade.student
        key = f"group {match['name']}" if match["name"] in groups else number
        other = found.setdefault(key, grade)
        if other is not grade:
            raise GraderError(
                f"{other.student!r} and {grade.student!r} are submissions of one participant or group in Moodle, but "
                "have two grades",
                "Put these files into one folder, named like one of them, and grade the class again.",
            )
    return found


def _gradebook(by_email: dict[str, Grade], target: Path, made: Export) -> None:
    rows = [["Email address", "Grade"]]
    rows += [[no_formula(email), f"{grade.total:g}"] for email, grade in sorted(by_email.items())]
    made.graded = len(by_email)
    write_file(target / "moodle-gradebook.csv", table(rows))
    made.files.append(target / "moodle-gradebook.csv")
    made.left_out.append("feedback files: Moodle needs participant numbers, which e-mail addresses do not have")
