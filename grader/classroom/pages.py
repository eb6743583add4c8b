"""The pages of a class: feedback.html for each student, class.html for the instructor, leaderboard.html for the class.

Each student also gets feedback.txt. Each page is one self-contained file that works offline, without scripts and fonts.
The hash of its style sheet is in the page's Content-Security-Policy (Content Security Policy Level 3, W3C). All texts
of students are escaped.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from grader.classroom import gradebook, leaderboard, mistakes, similar
from grader.classroom.cells import printable
from grader.classroom.gradebook import GradeBook
from grader.classroom.incidents import Incident, note
from grader.classroom.result import StudentResult
from grader.classroom.similar import Pair
from grader.classroom.stored import AT_HOME, Stored, commands_at_home, shown_name, shown_names, stored, text_at_home
from grader.classroom.submissions import Submission
from grader.course import Course
from grader.course.learner.packing import OPT_IN
from grader.report import html
from grader.report.terminal import as_text
from grader.setup.errors import GraderError
from grader.setup.files import write_file
from grader.verdict import ERROR, PASSED, STAGES, Verdict

MOST_GROUPS = 25
"""The maximum number of groups of similar files on a page."""
MOST_LINES = 1500
"""The maximum number of lines shown of each of two similar files."""
BINS = 10
_FAILED_FIRST = {"failed": 0, "error": 1, "skipped": 2, "passed": 3}


def write_pages(
    course: Course,
    submissions: Sequence[Submission],
    results: Sequence[StudentResult],
    pairs: Sequence[Pair],
    out: Path,
) -> Path:
    """Write all pages into the folder of results; return the path of the class page."""
    book = gradebook.load(out)
    students = []
    for submission, result, grade in zip(submissions, results, book.grades):
        try:
            student = stored(submission, result, grade, book.maxima)
            write_file(out / student.folder / "feedback.txt", feedback_text(student, book))
            write_file(out / student.folder / "feedback.html", feedback_page(student, book))
            students.append(student)
        except GraderError:  # the disk is full
            raise
        except Exception as error:  # the other students still get their pages
            note(out, submission.student, Incident.of(error, "writing the feedback"))
    names = shown_names(student.result.student for student in students)
    students = [replace(student, name=names[student.result.student]) for student in students]
    boards = leaderboard.boards(students)
    title = course.manifest.title
    write_file(out / "leaderboard.html", _page("leaderboard.html.j2", title=title, boards=boards, opt_in=OPT_IN))
    path = out / "class.html"
    write_file(
        path, _page("class.html.j2", title=title, boards=boards, opt_in=OPT_IN, **_class(course, students, pairs, book))
    )
    return path


def feedback_page(student: Stored, book: GradeBook) -> str:
    """Return the page of one student."""
    from markupsafe import Markup

    verdicts = {verdict.exercise: verdict for verdict in student.verdicts}
    submission = printable(student.result.submission)
    rows = [
        {
            "exercise": name,
            "points": student.grade.points.get(name, 0.0),
            "maximum": maximum,
            "status": _status(verdicts.get(name)),
            "stages": _stage_points(verdicts.get(name), book.stages.get(name, {}), name in student.result.unchanged),
            "link": name in verdicts,
        }
        for name, maximum in book.maxima.items()
    ]
    rows.sort(key=lambda row: _FAILED_FIRST[str(row["status"])])
    reports = [
        # escaped by the template
        (name, Markup(html.report(verdicts[name], student.sources.get(name, "").splitlines())))
        for name in (str(row["exercise"]) for row in rows)
        if name in verdicts
    ]
    return _page(
        "feedback.html.j2",
        title=student.name,
        submission=submission if shown_name(submission) != student.name else "",
        notes=student.result.notes,
        rows=rows,
        grade=student.grade,
        maximum=book.maximum,
        reports=reports,
        commands=commands_at_home(student.verdicts),
    )


def feedback_text(student: Stored, book: GradeBook) -> str:
    """Return the feedback of one student as plain text."""
    grade = student.grade
    parts = [f"Submission: {printable(student.result.submission)}"]
    parts.append("; ".join([f"Points: {grade.total:g} of {book.maximum:g}", *grade.reasons]))
    parts += ["", *(as_text(verdict) for verdict in student.verdicts), *student.result.notes]
    return "\n".join(parts) + "\n" + text_at_home(student.verdicts)


def _page(name: str, **shown: Any) -> str:
    from markupsafe import Markup

    own = Path(html.__file__).with_name("class_style.css").read_text(encoding="utf-8")
    style = html.style() + own
    return html.template(name).render(
        at_home=AT_HOME, style=Markup(style), policy=html.content_security_policy(style), **shown
    )


def _stage_points(verdict: Verdict | None, worth: Mapping[str, float], unchanged: bool) -> str:
    """Return the partial points of each stage as text: ``builds 1 of 1, correct 0 of 5``."""
    passed = {stage.name for stage in verdict.stages if stage.status == PASSED} if verdict and not unchanged else set()
    return ", ".join(f"{name} {most if name in passed else 0:g} of {most:g}" for name, most in worth.items() if most)


def _status(verdict: Verdict | None) -> str:
    if verdict is None:
        return "skipped"
    return "passed" if verdict.passed else "error" if verdict.exit_code == 2 else "failed"


def _class(course: Course, students: list[Stored], pairs: Sequence[Pair], book: GradeBook) -> dict[str, Any]:
    exercises = [_exercise(name, students) for name in book.maxima]
    graded = [student.grade.total for student in students if not student.grade.failed]
    present = {part[0] for row in exercises for part in row["parts"]}
    groups = similar.groups(pairs)
    labels = {"passed": "passed", **{stage: f"fails at {stage}" for stage in STAGES}, "error": "not graded"}
    return {
        "students": [_row(student, book) for student in students],
        "complete": sum(total >= book.maximum > 0 for total in graded),
        "refused": sum(bool(student.result.refused) for student in students),
        "failed": sum(student.grade.failed for student in students),
        "stage_names": [stage for stage in STAGES if any(row["stuck"][stage] for row in exercises)],
        "exercises": exercises,
        "errors": any(row["errors"] for row in exercises),
        "key": [(kind, label) for kind, label in labels.items() if kind in present],
        "summary": _summary(graded, book.maximum),
        "bins": _bins(graded, book.maximum),
        "mistakes": mistakes.most_common(students),
        "groups": [_group(course, group, students) for group in groups[:MOST_GROUPS]],
        "more_groups": max(0, len(groups) - MOST_GROUPS),
        "k": similar.K,
    }


def _exercise(name: str, students: Sequence[Stored]) -> dict[str, Any]:
    """Return the counts of one exercise, and the segments of its bar chart in percent of the submissions."""
    verdicts = [verdict for student in students for verdict in student.verdicts if verdict.exercise == name]
    counts = {"passed": sum(verdict.passed for verdict in verdicts), **dict.fromkeys(STAGES, 0), "error": 0}
    for verdict in verdicts:
        stage = verdict.failed_stage
        if stage is not None:
            counts["error" if stage.status == ERROR else stage.name] += 1
    parts, place = [], 0.0
    for kind, count in counts.items():
        if count:
            width = 100 * count / len(verdicts)
            parts.append((kind, place, width))
            place += width
    return {
        "exercise": name,
        "short": name.rpartition("/")[2],
        "handed_in": len(verdicts),
        "passed": counts["passed"],
        "errors": counts["error"],
        "stuck": {stage: counts[stage] for stage in STAGES},
        "parts": parts,
    }


def _summary(totals: Sequence[float], maximum: float) -> str:
    if not totals:
        return "No student has a grade yet."
    mean, median = statistics.fmean(totals), statistics.median(totals)
    said = f"Of {maximum:g} points the median is {median:.4g} and the mean {mean:.3g}"
    if len(totals) < 4:
        return f"{said}."
    lower, _, upper = statistics.quantiles(totals, n=4, method="inclusive")
    return f"{said}; the middle half of the class has {lower:.3g} to {upper:.3g}."


def _bins(totals: Sequence[float], maximum: float) -> list[dict[str, Any]]:
    """Return a histogram of the totals in percent of the maximum, highest bin first.

    The highest bin includes totals above the maximum.
    """
    counts = [0] * BINS
    for total in totals:
        counts[min(BINS - 1, int(BINS * total / maximum) if maximum else 0)] += 1
    most = max(counts)
    step = 100 // BINS
    return [
        {"label": f"{step * i}–{step * (i + 1)} %", "count": counts[i], "width": 100 * counts[i] / most if most else 0}
        for i in reversed(range(BINS))
    ]


def _group(course: Course, pairs: Sequence[Pair], students: Sequence[Stored]) -> dict[str, Any]:
    """Return a group of similar submissions: the students, and the most similar pair side by side."""
    by_name = {student.result.student: student for student in students}
    names = [name for name in similar.students(pairs) if name in by_name]
    best = pairs[0]
    shown = [by_name[name] for name in (best.first, best.second) if name in by_name]
    texts = [student.sources.get(best.exercise, "") for student in shown]
    same: Sequence[set[int]] = [set() for _ in texts]
    if len(texts) == 2:
        entry = course.find(best.exercise)
        same = similar.common_lines(texts[0], texts[1], similar.given(entry), entry.language)
    return {
        "exercise": best.exercise,
        "similarity": best.similarity,
        "students": [by_name[name] for name in names],
        "sides": [
            {
                "student": student,
                "lines": [line.expandtabs(4) for line in text.splitlines()[:MOST_LINES]],
                "same": marked,
            }
            for student, text, marked in zip(shown, texts, same)
        ],
    }


def _row(student: Stored, book: GradeBook) -> dict[str, Any]:
    verdicts = {verdict.exercise: verdict for verdict in student.verdicts}
    marks = []
    for name in book.maxima:
        verdict = verdicts.get(name)
        stage = verdict.failed_stage if verdict else None
        if name in student.result.unchanged:
            marks.append(("skipped", "skeleton"))
        else:
            marks.append((_status(verdict) if verdict else "", stage.name if stage else "" if verdict else "–"))
    grade = student.grade
    notes = [student.result.refused] if student.result.refused else []
    notes += [*grade.reasons, *student.result.remarks]
    return {
        "name": student.name,
        "folder": student.folder,
        "total": grade.total,
        "marks": marks,
        "note": "; ".join(printable(text) for text in notes),
    }
