"""Canvas: "Import" of the gradebook, and "Re-upload submissions" of an assignment.

Canvas reads the gradebook's file by the columns *Student*, *ID*, *SIS User ID*, *SIS Login ID*, *Section* and one for
each assignment, named "Title (1234)" with the assignment's number. A row "Points Possible" may come first
(instructure/canvas-lms: lib/gradebook_importer.rb; Canvas's instructor guide, "How do I import grades in the
Gradebook?"). Canvas exports such a file. The grader fills in the column of one assignment and keeps only the columns
that identify students, so that the import changes nothing else.

Submissions from Canvas are named ``lastfirst_12_345_work.zip``, or with ``_LATE_`` after the name: first the student's
number, then the attachment's. Canvas finds the student of a re-uploaded file by the same two numbers and shows the file
under the attachment's name (AbstractAssignment#infer_comment_context_from_filename in the same source). The feedback
for an archive is therefore an archive, and the feedback for a kernel is text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from grader.classroom.csv_files import number_in, read_table, table
from grader.classroom.exports.feedback import Export, feedback_file, gradable
from grader.classroom.gradebook import GradeBook
from grader.classroom.policy import Grade
from grader.classroom.submissions import CANVAS
from grader.course.learner.zipped import zipped
from grader.course.manifest import SUFFIXES
from grader.setup.errors import GraderError
from grader.setup.files import write_file
from grader.verdict import words

WHO = ("Student", "ID", "SIS User ID", "SIS Login ID", "Root Account", "Section")
HINT = 'In Canvas: Grades, "Export", "Export Entire Gradebook".'


def export(book: GradeBook, out: Path, target: Path, gradebook: Path, assignment: str) -> Export:
    """Write canvas-grades.csv and canvas-feedback.zip into the folder ``target``."""
    made = Export()
    grades = gradable(book, made)
    rows = read_table(gradebook, ("Student", "ID", "Section"), HINT)
    head = rows[0]
    column = _assignment(head, assignment, gradebook)
    kept = [index for index, name in enumerate(head) if name in WHO]
    by_key = _by_key(grades)
    identifier, login = head.index("ID"), head.index("SIS Login ID") if "SIS Login ID" in head else -1
    written = [[*(head[index] for index in kept), head[column]]]
    found = set()
    for row in rows[1:]:
        if row[0].strip() == "Points Possible":
            _fits(row[column], book, head[column])
            possible = number_in(row[column])
            written.append([*(row[index] for index in kept), row[column] if possible is None else f"{possible:.2f}"])
            continue
        number, name = row[identifier].strip(), row[login].strip() if login >= 0 else ""
        if number in by_key and name in by_key:
            raise _two_grades(by_key[number], by_key[name])
        grade = by_key.get(number) or by_key.get(name)
        if grade is not None and number:
            written.append([*(row[index] for index in kept), f"{grade.total:g}"])
            found.add(grade.folder)
    made.graded = len(found)
    made.left_out += [f"{grade.student!r} is not in {gradebook.name}" for grade in grades if grade.folder not in found]
    if not found:
        raise GraderError(
            f"no submission matches a student of {gradebook}",
            "Submissions must be named as Canvas does (lastfirst_12_345_work.zip), or by the SIS Login ID. If they are "
            "anonymous (anon_...), post the grades in Canvas, and download the submissions again.",
        )
    feedback, others = dict[str, bytes](), []
    for grade in grades:
        suffix = PurePosixPath(grade.submission.lower()).suffix
        if CANVAS.fullmatch(grade.submission) and suffix == ".zip":
            feedback[_plain(grade.submission)] = zipped({"feedback.html": feedback_file(out, grade, "feedback.html")})
        elif CANVAS.fullmatch(grade.submission) and suffix in SUFFIXES.values():
            feedback[_plain(grade.submission)] = feedback_file(out, grade, "feedback.txt")
        else:
            others.append(grade.student)
    files: dict[str, str | bytes] = {"canvas-grades.csv": table(written)}
    if feedback:
        files["canvas-feedback.zip"] = zipped(feedback)
    if others:
        count = words.count(len(others), "student")
        made.left_out.append(
            f"feedback files of {count} without an archive or a kernel from Canvas, such as {others[0]!r}"
        )
    for name, content in files.items():
        write_file(target / name, content)
        made.files.append(target / name)
    return made


def _numbers(grade: Grade) -> re.Match[str] | None:
    """Return the match of a name from Canvas, which holds the numbers of the student and of the attachment."""
    return CANVAS.fullmatch(grade.submission) or CANVAS.fullmatch(grade.student)


def _by_key(grades: Iterable[Grade]) -> dict[str, Grade]:
    """Return the grades by the number or name that identifies the student in a row of the gradebook."""
    found: dict[str, Grade] = {}
    for grade in grades:
        numbers = _numbers(grade)
        other = found.setdefault((numbers and numbers["number"]) or grade.student, grade)
        if other is not grade:
            raise _two_grades(other, grade)
    return found


def _two_grades(first: Grade, second: Grade) -> GraderError:
    return GraderError(
        f"{first.student!r} and {second.student!r} are submissions of one student of Canvas, with two grades",
        "Put this student's files into one archive, named like one of them, and grade the class again.",
    )


def _plain(name: str) -> str:
    """Return the submission's file name from Canvas, with path separators and other unsafe characters replaced."""
    return re.sub(r"[^\w. ()+-]", "-", name.encode(errors="replace").decode()).lstrip(".")


def _assignment(head: list[str], wanted: str, path: Path) -> int:
    """Return the index of an assignment's column. ``wanted``: its title, its number or both."""
    of_assignments = [i for i, name in enumerate(head) if re.search(r"\(\d+\)\s*$", name)]
    for i in of_assignments:
        title, _, number = head[i].strip().rpartition(" (")
        if wanted in (head[i].strip(), title, number.rstrip(")")):
            return i
    there = ", ".join(repr(head[i]) for i in of_assignments[:5]) or "none"
    raise GraderError(
        f"{path} has no assignment {wanted!r}", f"Choose --assignment from the gradebook's columns: {there}."
    )


def _fits(possible: str, book: GradeBook, assignment: str) -> None:
    most = number_in(possible)
    if most is not None and most != book.maximum:
        raise GraderError(
            f"{assignment} has {most:g} points in Canvas, but the class was graded out of {book.maximum:g}",
            "Set the assignment's points in Canvas, or [points] in the instructor's file, and try again.",
        )
