"""A class with hostile students, graded once: all pages and exports are created and read back."""

from __future__ import annotations

import csv
import hashlib
import html.parser
import io
import json
import os
import re
import zipfile
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from grader.classroom.exports import canvas, moodle
from grader.classroom.gradebook import GradeBook, load
from grader.classroom.policy import Grade
from grader.cli.app import run
from grader.setup.errors import GraderError
from tests.classroom import hostile
from tests.classroom.archives import zip_of
from tests.classroom.conftest import KERNEL, TASKS
from tests.small_course import write_course

COUNTED = TASKS.replace("import Case", "import Bar, Case").replace(
    "timeout=2.0", 'timeout=2.0, efficient=Case("counted", n=4096), bars=[Bar("global_bytes / minimum", at_most=1.1)]'
)
TWICE_READ = KERNEL.replace("2.0f * x[i]", "x[i] + ((volatile const float*)x)[i]")
WRONG = KERNEL.replace("2.0f", "3.0f")
LONG = KERNEL + "".join(f"__device__ float part{i}(float a) {{ return a * {i} + {i}.5f; }}\n" for i in range(12))
HONEST = {
    "Ann Lee_101_assignsubmission_file_": (LONG, "The Warpers"),
    "Bob Ray_102_assignsubmission_file_": (LONG.replace("twice_kernel", "mine").replace("part", "copied"), ""),
    "Cem Oz_103_assignsubmission_file_": (WRONG, "Cem"),
    "Dan Fox_104_assignsubmission_file_": (TWICE_READ, "Dan"),
    "doeeve_LATE_12_345_work": (KERNEL, "Eve"),
    "fay@school.edu": (KERNEL, ""),
}
POINTS = """
[points."twice"]
builds = 1
correct = 4
safe = 2
efficient = 3

[late]
due = 2026-03-01T12:00:00+00:00
percent_per_day = 10
submitted = "times.csv"

[[extra]]
student = "fay@school.edu"
points = 1.5
why = "<b>found a mistake</b>"
"""


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Yield the results folder of a class in which every fifth student is hostile. The current folder is the course."""
    place = tmp_path_factory.mktemp("hostile")
    course, folder = place / "course", place / "class"
    stages = 'stages = ["builds", "correct", "safe", "efficient"]'
    write_course(
        course,
        {"day01_start": COUNTED},
        {"day01_start/twice": f'title = "Twice"\nkind = "implement"\npoints = 10\n{stages}'},
    )
    folder.mkdir()
    for student, (kernel, nickname) in HONEST.items():
        if student.endswith("work"):
            (folder / f"{student}.zip").write_bytes(zip_of({"twice.cu": kernel, "leaderboard.txt": nickname}))
            continue
        (folder / student).mkdir()
        (folder / student / "twice.cu").write_text(kernel)
        if nickname:
            (folder / student / "leaderboard.txt").write_text(nickname)
    students = [*HONEST, *hostile.hand_in(folder, "twice", len(hostile.KINDS))]
    (place / "instructor.toml").write_text(f'seed = 7\nexercises = ["twice"]\n{POINTS}')
    with (place / "times.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["student", "submitted"])
        table.writerows([student, "2026-03-02T13:00:00+00:00" if "LATE" in student else ""] for student in students)
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("GRADER_COURSE", raising=False)
        patch.chdir(course)
        assert (
            run(["grade", str(folder), "--out", str(place / "out"), "--instructor", str(place / "instructor.toml")])
            == 0
        )
        yield place / "out"


def totals(out: Path) -> dict[str, float]:
    return {grade.student: grade.total for grade in load(out).grades}


def test_all_students_are_graded_with_the_instructors_points(graded: Path) -> None:
    found = totals(graded)
    assert len(found) == len(HONEST) + len(hostile.KINDS)
    assert {student: found[student] for student in HONEST} == {
        "Ann Lee_101_assignsubmission_file_": 10,
        "Bob Ray_102_assignsubmission_file_": 10,
        "Cem Oz_103_assignsubmission_file_": 1,  # the kernel only compiles
        "Dan Fox_104_assignsubmission_file_": 7,  # the kernel reads its input twice, so it misses the bar
        "doeeve_LATE_12_345_work": 8,  # late by more than one day
        "fay@school.edu": 11.5,
    }
    assert not any(total for student, total in found.items() if student not in HONEST)
    with (graded / "grades.csv").open(newline="", encoding="utf-8-sig") as file:
        rows = {row["student"]: row for row in csv.DictReader(file)}
    assert rows["doeeve_LATE_12_345_work"]["late"] == "-2" and "2 days late" in rows["doeeve_LATE_12_345_work"]["note"]
    assert rows["fay@school.edu"]["extra"] == "1.5" and rows["fay@school.edu"]["late"] == "0"
    assert rows["Dan Fox_104_assignsubmission_file_"]["day01_start/twice"] == "7"


class Page(html.parser.HTMLParser):
    """A page as a browser parses it: elements, URLs, attributes that run scripts, and text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.addresses: list[str] = []
        self.running: list[str] = []
        self.policy = ""
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        given = {name: value or "" for name, value in attributes}
        self.running += [name for name in given if name.startswith("on") or name == "style"]
        self.addresses += [given[name] for name in ("src", "href", "action", "data", "srcset") if name in given]
        if given.get("http-equiv") == "Content-Security-Policy":
            self.policy = given["content"]

    def handle_data(self, data: str) -> None:
        self.text += f"{data} "


def test_pages_contain_no_scripts_or_external_resources(graded: Path) -> None:
    pages = sorted(graded.rglob("*.html"))
    assert len(pages) == len(HONEST) + len(hostile.KINDS) + 2
    folders = {path.parent.name for path in graded.glob("*/feedback.html")}
    for path in pages:
        text = path.read_text()
        page = Page(text)
        assert not {"script", "img", "iframe", "object", "embed", "link", "base", "form", "b"} & set(page.tags), path
        assert not page.running, path
        for address in page.addresses:
            if address == "#day01_start/twice":
                continue
            assert re.fullmatch(r"[\w.-]+/feedback\.html", address) and address.partition("/")[0] in folders
        style = re.findall(r"<style>(.*?)</style>", text, re.DOTALL)
        assert len(style) == 1
        digest = b64encode(hashlib.sha256(style[0].encode()).digest()).decode()
        assert page.policy == f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"


def test_the_instructors_page(graded: Path) -> None:
    text = " ".join(Page((graded / "class.html").read_text()).text.split())
    assert "14 submissions" in text and "Of 10 points" in text
    assert "100 % · Ann Lee ; Bob Ray" in text
    assert "__device__ float copied11(float a)" in text
    assert "global_bytes / minimum" in text and "1 student · day01_start/twice · Correct" in text
    assert "document.title = 'run'" in text, "a hostile student's name is shown literally"
    assert "{{ 7 * 7 }}" in text
    marked = re.findall(r'<tr class="same">.*', (graded / "class.html").read_text())
    assert len(marked) >= 2 * 12 and not any("extern" in line for line in marked if "part" in line)


def test_the_leaderboard_lists_students_who_opted_in_and_passed(graded: Path) -> None:
    text = " ".join(Page((graded / "leaderboard.html").read_text()).text.split())
    assert "The Warpers" in text and "Eve" in text
    for hidden in ("Ann Lee", "Bob Ray", "Cem", "Dan", "fay@", "script"):
        assert hidden not in text
    assert "1 Eve 32 KiB 1.00 times 1 The Warpers 32 KiB 1.00 times" in text, "equal traffic must have equal rank"


def test_feedback_shows_points_and_the_source_with_its_counters(graded: Path) -> None:
    by_name = {grade.student: grade for grade in load(graded).grades}
    dan = Page((graded / by_name["Dan Fox_104_assignsubmission_file_"].folder / "feedback.html").read_text())
    shown = " ".join(dan.text.split())
    assert "partly" in shown and "Partly: 7 of 10 points" in shown and "Not passed yet" not in shown
    assert "builds 1 of 1, correct 4 of 4, safe 2 of 2, efficient 0 of 3" in shown
    assert "#day01_start/twice" in dan.addresses
    assert "total 7 10" in shown and "((volatile const float*)x)[i]" in shown and "sectors" in shown
    fay = Page((graded / by_name["fay@school.edu"].folder / "feedback.html").read_text()).text
    assert "1.5 points more: <b>found a mistake</b>" in fay
    eve = Page((graded / by_name["doeeve_LATE_12_345_work"].folder / "feedback.html").read_text()).text
    assert "handed in 2 days late" in eve


def rows(path: Path) -> list[list[str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


WORKSHEET = """\ufeffIdentifier,"Full name","Email address",Status,Grade,"Maximum Grade","Grade can be changed","Last modified (submission)","Last modified (grade)","Feedback comments"
"Participant 101","Ann Lee",ann@x.org,"Submitted for grading",,"10,00",Yes,"Sunday, 1 March 2026, 9:00 AM",-,""
"Participant 104","=Dan(1)",dan@x.org,"Submitted for grading",3,"10,00",Yes,"Sunday, 1 March 2026, 9:00 AM","Monday, 2 March 2026, 9:00 AM","kept, ""as"" it is"
"Participant 999","Zed Zed",zed@x.org,"No submission",,"10,00",Yes,-,-,""
"""  # noqa: E501


def test_moodle_worksheet_and_feedback(graded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "worksheet.csv").write_text(WORKSHEET)
    arguments = ["export", "moodle", str(graded), "--out", str(tmp_path / "up")]
    assert run([*arguments, "--worksheet", str(tmp_path / "worksheet.csv")]) == 0
    said = capsys.readouterr()
    assert "2 grades written" in said.out and "no participant number" in said.err
    before, after = list(csv.reader(io.StringIO(WORKSHEET.lstrip("\ufeff")))), rows(tmp_path / "up/moodle-grades.csv")
    for old, new in zip(before, after, strict=True):
        grade = {"Participant 101": "10", "Participant 104": "7"}.get(old[0], old[4])
        assert new == [*old[:4], grade, *old[5:]]
    with zipfile.ZipFile(tmp_path / "up/moodle-feedback.zip") as archive:
        places = archive.namelist()
        # Moodle's importziplib.php expects names of the form name_number_type_plugin_, followed by the file name.
        read = [[*place.split("/")[0].split("_", 4), place.partition("/")[2]] for place in places]
        assert [(number, kind, plugin, file) for _, number, kind, plugin, _, file in read] == [
            (number, "assignfeedback", "file", "feedback.html") for number in ("101", "104")
        ]
        folder = next(grade.folder for grade in load(graded).grades if grade.student.startswith("Dan"))
        assert archive.read(places[1]) == (graded / folder / "feedback.html").read_bytes()


def test_moodle_without_a_worksheet(graded: Path, tmp_path: Path) -> None:
    with pytest.raises(GraderError, match="--worksheet is missing"):
        moodle.export(load(graded), graded, tmp_path)


def test_groups_in_moodle(tmp_path: Path) -> None:
    """Give each member the grade of the group. The number in a group's name is not a participant's."""
    students = {
        "A amp; Bs_102_assignsubmission_file": 5.0,
        "Default group_assignsubmission_file": 6,
        "Team C-Eve Poe_103_assignsubmission_file_": 7,  # as Moodle before 4.1 writes it
        "Team D_105_assignsubmission_file": 8,
    }
    grades = [
        Grade(student=student, folder=student.split("_")[0], submission="", points={}, maximum=10, total=total)
        for student, total in students.items()
    ]
    for grade in grades:
        (tmp_path / grade.folder).mkdir()
        (tmp_path / grade.folder / "feedback.html").write_text(grade.student)
    sheet = "Identifier,Full name,Group,Grade,Maximum grade,Last modified (grade)\n" + "".join(
        f"Participant {number},{name},{group},,{most},-\n"
        for number, name, group, most in (
            (101, "Ann Lee", "A & B's", 10),
            (102, "Bob Ray", "Default group", 10),
            (103, "Eve Poe", "Team C", 10),
            (104, "Cem Oz", "A & B's", 10),
            (105, "Zed Zed", "Team Z", 10),
        )
    )
    (tmp_path / "worksheet.csv").write_text(sheet)
    book = GradeBook(maxima={"day01_start/twice": 10}, grades=grades)
    made = moodle.export(book, tmp_path, tmp_path, tmp_path / "worksheet.csv")
    assert [row[3] for row in rows(tmp_path / "moodle-grades.csv")[1:]] == ["5", "6", "7", "5", ""]
    assert made.graded == 4 and made.left_out == ["'Team D_105_assignsubmission_file' is not in worksheet.csv"]
    with zipfile.ZipFile(tmp_path / "moodle-feedback.zip") as archive:
        found = {place.split("_")[1]: archive.read(place).decode() for place in archive.namelist()}
    first, default, eve, _ = students
    assert found == {"101": first, "102": default, "103": eve, "104": first}
    (tmp_path / "worksheet.csv").write_text(sheet.replace(",10,", ",100,"))
    with pytest.raises(GraderError, match="100 points in Moodle, but the class was graded out of 10"):
        moodle.export(book, tmp_path, tmp_path, tmp_path / "worksheet.csv")


def test_moodle_by_email(graded: Path, tmp_path: Path) -> None:
    book = load(graded)
    book.grades = [grade for grade in book.grades if "@" in grade.student and "_" not in grade.student]
    made = moodle.export(book, graded, tmp_path)
    assert rows(tmp_path / "moodle-gradebook.csv") == [["Email address", "Grade"], ["fay@school.edu", "11.5"]]
    assert made.graded == 1 and "feedback files" in made.left_out[0]
    with pytest.raises(GraderError, match="no submission has a name from Moodle") as error:
        moodle.export(book, graded, tmp_path, tmp_path / "worksheet.csv")
    assert "omit --worksheet" in error.value.hint


GRADEBOOK = """\ufeffStudent,ID,SIS User ID,SIS Login ID,Section,Kernels 1 (5678),Kernels 2 (5679),Current Score
    Points Possible,,,,,"10,00",20.00,(read only)
"Doe, Eve",12,s12,eve,A,,15,75
"Fox, Fay",13,s13,fay@school.edu,A,3,,50
"Student, Test",99,,,A,,,
"""


def test_canvas_gradebook_and_feedback(graded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "grades.csv").write_text(GRADEBOOK)
    arguments = [
        "export",
        "canvas",
        str(graded),
        "--gradebook",
        str(tmp_path / "grades.csv"),
        "--out",
        str(tmp_path / "up"),
    ]
    assert run([*arguments, "--assignment", "5678"]) == 0
    assert "2 grades written" in capsys.readouterr().out
    assert rows(tmp_path / "up/canvas-grades.csv") == [
        ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", "Kernels 1 (5678)"],
        ["    Points Possible", "", "", "", "", "10.00"],
        ["Doe, Eve", "12", "s12", "eve", "A", "8"],
        ["Fox, Fay", "13", "s13", "fay@school.edu", "A", "11.5"],
    ]
    with zipfile.ZipFile(tmp_path / "up/canvas-feedback.zip") as archive:
        assert archive.namelist() == ["doeeve_LATE_12_345_work.zip"]
        # Canvas takes the first number in a file name as the user and the second as the attachment.
        numbers = [part for part in archive.namelist()[0].split("_") if part.isdigit()]
        assert numbers[:2] == ["12", "345"]
        with zipfile.ZipFile(io.BytesIO(archive.read(archive.namelist()[0]))) as inner:
            assert inner.namelist() == ["feedback.html"] and b"<bdi>doeeve</bdi>" in inner.read("feedback.html")


def test_canvas_students_who_hand_in_no_archive(tmp_path: Path) -> None:
    """Write the feedback for a kernel as text, under its name; name a student whose feedback Canvas cannot take."""
    (tmp_path / "grades.csv").write_text(GRADEBOOK + "Poe,14,,,A,,,\n")
    names = ["doeeve_12_345_twice.cu", "foxfay_13_346_work.zip", "poe_14_text.html"]
    grades = [
        Grade(student="_".join(name.split("_")[:2]), folder=name[:3], submission=name, points={}, maximum=10, total=4)
        for name in names
    ]
    for grade in grades:
        (tmp_path / grade.folder).mkdir()
        (tmp_path / grade.folder / "feedback.html").write_text("page")
        (tmp_path / grade.folder / "feedback.txt").write_text("text")
    book = GradeBook(maxima={"day01_start/twice": 10}, grades=grades)
    made = canvas.export(book, tmp_path, tmp_path, tmp_path / "grades.csv", "5678")
    assert made.graded == 3 and [row[-1] for row in rows(tmp_path / "canvas-grades.csv")[2:]] == ["4", "4", "4"]
    assert made.left_out == ["feedback files of 1 student without an archive or a kernel from Canvas, such as 'poe_14'"]
    with zipfile.ZipFile(tmp_path / "canvas-feedback.zip") as archive:
        assert sorted(archive.namelist()) == names[:2] and archive.read(names[0]) == b"text"
    for other in ("doeeve_12_347_notes", "eve"):  # an attachment that was graded by itself, a login
        more = Grade(student=other, folder="other", submission="", points={}, maximum=10, total=0)
        with pytest.raises(GraderError, match=f"'doeeve_12' and '{other}' are submissions of one student"):
            canvas.export(
                GradeBook(maxima=book.maxima, grades=[*grades, more]),
                tmp_path,
                tmp_path,
                tmp_path / "grades.csv",
                "5678",
            )


@pytest.mark.parametrize(
    ("table", "assignment", "says"),
    [
        (GRADEBOOK, "5679", "20 points in Canvas, but the class was graded out of 10"),
        (GRADEBOOK, "Kernels 3", r"no assignment 'Kernels 3'"),
        ("Name,ID\nx,1\n", "5678", "no column 'Student'"),
        (GRADEBOOK.replace("12,s12,eve", "77,,").replace("fay@school.edu", "fay"), "5678", "no submission matches"),
    ],
)
def test_a_gradebook_that_does_not_fit(graded: Path, tmp_path: Path, table: str, assignment: str, says: str) -> None:
    (tmp_path / "grades.csv").write_text(table)
    with pytest.raises(GraderError, match=says):
        canvas.export(load(graded), graded, tmp_path / "up", tmp_path / "grades.csv", assignment)
    assert not (tmp_path / "up").exists()


def test_points_above_moodles_maximum(graded: Path, tmp_path: Path) -> None:
    (tmp_path / "worksheet.csv").write_text(WORKSHEET)
    book = load(graded)
    next(grade for grade in book.grades if grade.student.startswith("Ann")).total = 12  # with extra points
    with pytest.raises(GraderError, match="Participant 101 has 12 points, but the assignment allows only 10"):
        moodle.export(book, graded, tmp_path, tmp_path / "worksheet.csv")


@pytest.mark.parametrize("most", ["5,00", "100.00"])
def test_another_maximum_in_moodle(graded: Path, tmp_path: Path, most: str) -> None:
    """Refuse a maximum of 100, for which 10 of 10 points would be a tenth of the grade."""
    (tmp_path / "worksheet.csv").write_text(WORKSHEET.replace("10,00", most))
    with pytest.raises(GraderError, match="points in Moodle, but the class was graded out of 10") as error:
        moodle.export(load(graded), graded, tmp_path, tmp_path / "worksheet.csv")
    assert "[points]" in error.value.hint


def test_two_grades_of_one_participant(graded: Path, tmp_path: Path) -> None:
    book = load(graded)
    ann = next(grade for grade in book.grades if grade.student.startswith("Ann"))
    book.grades.append(replace(ann, student="Ann Lee_101_assignsubmission_onlinetext_", total=0))
    (tmp_path / "worksheet.csv").write_text(WORKSHEET)
    with pytest.raises(GraderError, match="'Ann Lee_101_assignsubmission_file_' and 'Ann Lee_101_assignsubmission_onl"):
        moodle.export(book, graded, tmp_path, tmp_path / "worksheet.csv")


def test_students_who_could_not_be_graded_get_no_zero(graded: Path, tmp_path: Path) -> None:
    book = load(graded)
    for grade in book.grades:
        grade.failed = grade.student.startswith("Ann")
    (tmp_path / "worksheet.csv").write_text(WORKSHEET)
    made = moodle.export(book, graded, tmp_path, tmp_path / "worksheet.csv")
    assert [row[4] for row in rows(tmp_path / "moodle-grades.csv")] == ["Grade", "", "7", ""]
    assert "could not be graded yet" in made.left_out[0]


def test_exports_without_results(graded: Path, tmp_path: Path) -> None:
    with pytest.raises(GraderError, match=r"grades.json cannot be read"):
        load(tmp_path)
    for text in ("{}", "[", '{"format": 9, "maxima": {}, "grades": []}', "[" * 100_000):
        (tmp_path / "grades.json").write_text(text)
        with pytest.raises(GraderError, match=r"grades.json (is not a valid grades.json|has the format 9)"):
            load(tmp_path)


def test_changed_points_need_no_new_grading(graded: Path) -> None:
    """A changed instructor file changes the points without grading again."""
    place = graded.parent
    before = {path: path.stat().st_mtime_ns for path in graded.glob("*/results.json")}
    (place / "other.toml").write_text('seed = 7\nexercises = ["twice"]\n[points.twice]\ncorrect = 3\n')
    try:
        assert (
            run(["grade", str(place / "class"), "--out", str(graded), "--instructor", str(place / "other.toml")]) == 0
        )
        assert before == {path: path.stat().st_mtime_ns for path in graded.glob("*/results.json")}
        assert totals(graded)["Dan Fox_104_assignsubmission_file_"] == 3
        assert json.loads((graded / "grades.json").read_text())["maxima"] == {"day01_start/twice": 3}
    finally:
        run(["grade", str(place / "class"), "--out", str(graded), "--instructor", str(place / "instructor.toml")])
        assert totals(graded)["Dan Fox_104_assignsubmission_file_"] == 7
        assert os.path.exists(graded / "class.html")
