"""Former names of days and exercises still work in commands, files, progress and submissions."""

from __future__ import annotations

from pathlib import Path

import pytest

from grader.classroom.session import Session
from grader.classroom.submissions import find_submissions
from grader.cli.app import run
from grader.course import Course
from grader.course.learner import former_files, own_copy, pristine
from grader.course.learner.progress import ProgressFile
from grader.course.manifest import FILE
from grader.setup import shipped
from grader.setup.errors import GraderError
from tests.small_course import write_course

TITLE = 'title = "X"\nkind = "implement"\npoints = 10'
FORMERLY = """
[formerly]
day02_begin = "day02_start"
day02_began = "day02_start"
"day02_start/oldest" = "day02_start/new"
"day02_start/old" = "day02_start/new"
"""
NEW, OTHER, KEPT = "day02_start/new", "day02_start/other", "day02_start/kept"


def renamed_course(root: Path, formerly: str = FORMERLY) -> Course:
    """Write a course of one day with three exercises, one of which had two other names before."""
    write_course(root, {"day02_start": ""}, {name: TITLE for name in (NEW, OTHER, KEPT)})
    head, days = (root / FILE).read_text().split("\n[[day]]", 1)
    (root / FILE).write_text(f"{head}{formerly}\n[[day]]{days}")
    return Course(root)


@pytest.fixture
def course(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Course:
    root = tmp_path / "course"
    monkeypatch.delenv("GRADER_COURSE", raising=False)
    course = renamed_course(root)
    monkeypatch.chdir(root)
    pristine.keep_copies(course)
    return course


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("day02_begin/other", OTHER),
        ("day02_begin/new", NEW),
        ("day02_begin/old", NEW),
        ("day02_began/oldest", NEW),
        ("day02_start/old", NEW),
        ("exercises/day02_begin/old.cu", NEW),
        ("old", NEW),
        ("2/old", NEW),
        ("day02/oldest", NEW),
    ],
)
def test_former_names_are_found(course: Course, name: str, meant: str) -> None:
    assert course.find(name).name == meant and course.is_former(name)


def test_present_names_are_not_former_names(course: Course) -> None:
    assert not any(course.is_former(name) for name in (NEW, "new", "2/new", f"exercises/{NEW}.cu"))


def test_a_name_that_never_was(course: Course) -> None:
    with pytest.raises(GraderError) as caught:
        course.find("day02_begin/othr")
    assert OTHER in caught.value.hint


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ('day01_x = "day01_y"', "day01_x: 'day01_y' is not in the course"),
        ('"day02_start/x" = "day02_start/y"', "day02_start/x: 'day02_start/y' is not in the course"),
        ('"day02_start/x" = "day02_start"', "day02_start/x: 'day02_start' is not in the course"),
        ('"day01_x/x" = "day02_start/new"', "day01_x/x: this former exercise has a day that is not in the course"),
        ('"day02_start/kept" = "day02_start/new"', "day02_start/kept: this former name is also a present name"),
        ('day02_start = "day02_start"', "day02_start: this former name is also a present name"),
        ("day01_x = 3", "formerly: Expected str, got int"),
    ],
)
def test_errors_in_the_table_name_their_line(tmp_path: Path, line: str, says: str) -> None:
    with pytest.raises(GraderError) as caught:
        _ = renamed_course(tmp_path, f"[formerly]\n{line}\n").days
    assert says in caught.value.message and caught.value.hint
    assert f"{FILE}:6: " in caught.value.message or "Expected" in caught.value.message


def test_progress_under_former_names_counts(course: Course) -> None:
    file = ProgressFile(course.root)
    for name, passed in (("day02_begin/old", True), ("day02_start/oldest", False), ("day02_begin/other", True)):
        file.record_check(name, passed, "correct")
    file.record_hint("day02_begin/old", 2)
    file.record_check(NEW, False, "safe")
    progress = file.read()
    assert sorted(progress.exercises) == [NEW, OTHER]
    assert progress.of(OTHER).passed and progress.of(NEW).passed and progress.of(NEW).first_passed
    assert (progress.of(NEW).checks, progress.of(NEW).hints_shown) == (3, 2)
    assert '"day02_start/new"' in file.path.read_text() and "old" not in file.path.read_text()


def test_a_command_says_the_new_name(course: Course, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["solution", "day02_begin/old"]) == 2
    said = capsys.readouterr().err
    assert "note: day02_begin/old was renamed to day02_start/new" in said
    assert "you have not passed day02_start/new yet" in said


def test_a_file_at_the_former_path_moves_to_the_present_one(course: Course, capsys: pytest.CaptureFixture[str]) -> None:
    old = course.root / "exercises/day02_begin/old.cu"
    old.parent.mkdir()
    old.write_text("// my work")
    run(["solution", "old"])
    assert "moved your exercises/day02_begin/old.cu to exercises/day02_start/new.cu" in capsys.readouterr().err
    assert course.find(NEW).skeleton.read_text() == "// my work" and not old.exists()
    assert former_files.move_renamed(course) == []


def test_work_at_both_paths_stays(course: Course) -> None:
    old, new = course.root / "exercises/day02_start/old.cu", course.find(NEW).skeleton
    old.write_text("// my old work")
    new.write_text("// my new work")
    (note,) = former_files.move_renamed(course)
    assert note.startswith("exercises/day02_start/old.cu is not graded") and "exercises/day02_start/new.cu" in note
    assert (old.read_text(), new.read_text()) == ("// my old work", "// my new work")


def test_a_skeleton_left_at_the_former_path_is_no_work(course: Course) -> None:
    old = course.root / "exercises/day02_start/old.cu"
    for place in (old, own_copy.skeleton_copy(course.root, "day02_start", "old.cu")):
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text("// an older skeleton")
    assert former_files.move_renamed(course) == []
    assert old.exists()


def test_submit_packs_the_moved_file_under_the_present_name(course: Course) -> None:
    old = course.root / "exercises/day02_begin/old.cu"
    old.parent.mkdir()
    old.write_text("// my work")
    ProgressFile(course.root).record_check("day02_begin/old", True)
    assert run(["submit"]) == 0
    (handed_in,) = find_submissions(Path("submission.zip"))
    assert handed_in.kernels == {f"{NEW}.cu": b"// my work"}


def test_init_moves_changed_files_to_the_new_names(tmp_path: Path) -> None:
    course, mine = tmp_path / "course", tmp_path / "mine"
    write_course(course, {"day02_begin": ""}, {f"day02_begin/{name}": TITLE for name in ("old", "other", "kept")})
    own_copy.write(mine, course)
    (mine / "exercises/day02_begin/old.cu").write_text("// my work")
    (mine / "exercises/day02_begin/kept.cu").write_text("// my other work")
    (mine / "lessons/day02_begin/lesson.ipynb").write_text("my notes")
    for part in ("exercises", "lessons", "solutions"):
        (course / part / "day02_begin").rename(tmp_path / f"{part}_before")
    renamed_course(course)
    # The course renamed the file without changing it.
    (course / f"exercises/{NEW}.cu").write_text("// TODO: day02_begin/old\n")
    done = own_copy.write(mine, course)
    assert done.moved == {
        "exercises/day02_begin/kept.cu": f"exercises/{KEPT}.cu",
        "exercises/day02_begin/old.cu": f"exercises/{NEW}.cu",
        "lessons/day02_begin/lesson.ipynb": "lessons/day02_start/lesson.ipynb",
    }
    assert (mine / f"exercises/{NEW}.cu").read_text() == "// my work"
    assert done.beside == {f"exercises/{KEPT}.cu": f"exercises/{KEPT}.cu.new"}  # the course also changed its text
    assert f"exercises/{OTHER}.cu" in done.written and "exercises/day02_begin/other.cu" in done.removed
    assert not done.left
    assert own_copy.write(mine, course).moved == {}


def test_submissions_under_former_names_are_graded(course: Course, tmp_path: Path) -> None:
    handed_in = {
        "ann/exercises/day02_begin/old.cu": "// ann",
        "bob/old (1).cu": "// bob",
        "cid/day02_start/oldest.cu": "// cid, former",
        "cid/day02_start/new.cu": "// cid, present",
        "dan/day02_begin/other.cu": "// dan, former",
        "dan/day02_start/other.cu": "// dan, present",
    }
    for place, text in handed_in.items():
        path = tmp_path / "class" / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    submissions = find_submissions(tmp_path / "class")
    session = Session(course, submissions, tmp_path / "out")
    files = [
        {name: content.decode() for name, (_, content) in session._kernels(submission).items()}
        for submission in submissions
    ]
    assert files == [{NEW: "// ann"}, {NEW: "// bob"}, {NEW: "// cid, present"}, {OTHER: "// dan, present"}]
    assert session._remarks(submissions[0]) == []
    assert "day02_start/oldest.cu" in session._remarks(submissions[2])[0]


def test_the_course_knows_its_former_names() -> None:
    course = Course(shipped.COURSE)
    assert course.find("day11_quantisation/gptq_linear").name == "day11_quantization/gptq_linear"
