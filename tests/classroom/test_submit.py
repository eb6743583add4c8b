"""Packing a submission: included and excluded files, and grading of the packed files."""

from __future__ import annotations

import hashlib
import json
import os
import stat
import zipfile
from pathlib import Path

import pytest

from grader.classroom import class_archive, submissions
from grader.classroom.submissions import find_submissions
from grader.cli.app import run
from grader.course import Course
from grader.course.learner import packing, pristine
from grader.course.learner.progress import ProgressFile
from grader.setup.errors import GraderError
from tests.classroom.archives import Members, zip_of
from tests.classroom.conftest import KERNEL
from tests.small_course import write_course

TITLE = 'title = "X"\nkind = "implement"\npoints = 10'


@pytest.fixture
def learner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Course:
    """Return a course with one solved, one attempted and one untouched exercise."""
    root = tmp_path / "course"
    write_course(root, {"day01_start": ""}, {f"day01_start/{name}": TITLE for name in ("solved", "begun", "untouched")})
    monkeypatch.delenv("GRADER_COURSE", raising=False)
    monkeypatch.chdir(root)
    course = Course(root)
    pristine.keep_copies(course)
    for name in ("solved", "begun"):
        (root / f"exercises/day01_start/{name}.cu").write_text(f"// {name}\n{KERNEL}")
    ProgressFile(root).record_check("day01_start/solved", True)
    ProgressFile(root).record_check("day01_start/begun", False, "correct")
    for other in ("exercises/day01_start/notes.txt", "exercises/day01_start/secret.cu", "exercises/.env"):
        (root / other).write_text("mine")
    return course


def members(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_only_solved_exercises_are_packed(learner: Course, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["submit"]) == 0
    said = capsys.readouterr()
    assert "1 exercise" in said.out and "left out, because no check passed: begun" in said.err
    files = members(Path("submission.zip"))
    assert sorted(files) == ["day01_start/solved.cu", "submission.json"]
    assert files["day01_start/solved.cu"] == f"// solved\n{KERNEL}".encode()
    (listed,) = json.loads(files["submission.json"])["exercises"]
    assert listed["exercise"] == "day01_start/solved" and listed["passed"] and listed["checks"] == 1
    first = Path("submission.zip").read_bytes()
    os.utime("exercises/day01_start/solved.cu", (0, 0))
    assert run(["submit", "--out", "again.zip"]) == 0
    assert Path("again.zip").read_bytes() == first


def test_unfinished_work_and_a_nickname(learner: Course, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["submit", "--unfinished", "--leaderboard", "The  Warpers", "--out", "all.zip"]) == 0
    assert sorted(members(Path("all.zip"))) == [
        "day01_start/begun.cu", "day01_start/solved.cu", "leaderboard.txt", "submission.json",
    ]  # fmt: skip
    assert "included although no check passed: begun" in capsys.readouterr().out
    (submission,) = find_submissions(Path("all.zip"))
    assert submission.student == "all" and submission.nickname == "The Warpers"
    assert sorted(submission.kernels) == ["day01_start/begun.cu", "day01_start/solved.cu"]


def test_changes_since_the_last_check_are_reported(learner: Course, capsys: pytest.CaptureFixture[str]) -> None:
    file = learner.find("solved").skeleton
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    ProgressFile(learner.root).record_check("day01_start/solved", True, sha256=digest)
    assert run(["submit"]) == 0
    assert "changed after" not in capsys.readouterr().err
    file.write_text(f"{file.read_text()}// an afterthought")
    ProgressFile(learner.root).record_check("day01_start/solved", False, "correct", "the hash of another version")
    assert run(["submit"]) == 0
    assert "changed after the last check that passed; check again before you hand in: solved" in capsys.readouterr().err


def test_missing_work_is_reported(learner: Course, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["submit", "solved", "begun", "untouched"]) == 1
    said = capsys.readouterr().err
    assert "no check passed: begun" in said and "the skeleton is unchanged: untouched" in said
    Path("submission.zip").unlink()
    assert run(["submit", "begun"]) == 2
    assert "nothing to hand in" in capsys.readouterr().err
    assert not Path("submission.zip").exists()


@pytest.mark.parametrize("kind", ["link", "folder link", "pipe", "large", "folder"])
def test_only_regular_files_are_accepted(learner: Course, tmp_path: Path, kind: str) -> None:
    path = learner.root / "exercises/day01_start/solved.cu"
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/solved.cu").write_text("secret")
    if kind == "folder link":
        path.parent.rename(tmp_path / "moved")
        path.parent.symlink_to(tmp_path / "moved")
    elif kind == "large":
        path.write_bytes(b" " * (packing.MOST_BYTES + 1))
    else:
        path.unlink()
        if kind == "link":
            path.symlink_to(tmp_path / "elsewhere/solved.cu")
        elif kind == "pipe":
            os.mkfifo(path)
        else:
            path.mkdir()
    entry = learner.find("solved")
    says = {
        "link": "is a link",
        "folder link": "is a link",
        "large": "larger than 1 MB",
        "pipe": "is not a file",
        "folder": "is not a file",
    }
    with pytest.raises(GraderError, match=says[kind]):
        packing.pack(learner, ProgressFile(learner.root).read(), [entry])


@pytest.mark.parametrize("name", ["\n", "a\x1b[2J", "x" * 41, "a\u202eb"])
def test_names_that_the_leaderboard_refuses(learner: Course, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["submit", "--leaderboard", name]) == 2
    assert "cannot be shown" in capsys.readouterr().err
    assert run(["submit", "--out", "x.tar"]) == 2 and not Path("submission.zip").exists()


def test_a_refused_name_is_quoted_with_its_accents(learner: Course, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["submit", "--leaderboard", "Zoë" * 20]) == 2
    assert "ZoëZoë" in capsys.readouterr().err


def test_both_sides_agree_on_sizes() -> None:
    assert packing.MOST_BYTES == submissions.MOST_KERNEL_BYTES


def test_packed_files_are_graded(course: Course, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pristine.keep_copies(course)
    (course.root / "exercises/day01_start/twice.cu").write_text(KERNEL)
    ProgressFile(course.root).record_check("day01_start/twice", True)
    assert run(["submit", "--out", str(tmp_path / "ann.zip")]) == 0
    assert run(["grade", str(tmp_path / "ann.zip"), "--out", str(tmp_path / "out"), "--workers", "1"]) == 0
    assert '"ann","10"' in (tmp_path / "out/grades.csv").read_text(), capsys.readouterr()


def packed(path: Path, members: Members, **header: int) -> Path:
    path.write_bytes(zip_of(members, **header))
    return path


def test_an_archive_of_a_class(tmp_path: Path) -> None:
    """A download from a learning system: folders, archives, a zip bomb, and unrelated files."""
    path = packed(
        tmp_path / "class.zip",
        {
            "Ann_1_assignsubmission_file_/work.zip": zip_of({"day01/twice.cu": b"ann"}),
            "Bob_2_assignsubmission_file_/twice.cu": b"bob",
            "Bob_2_assignsubmission_file_/report.pdf": b"%PDF",
            "cem.zip": zip_of({"twice.cu": b"cem", "leaderboard.txt": b"Cem\nand more"}),
            "dan.zip": zip_of({"twice.cu": bytes(30 << 20)}),
            "eve.rar": b"Rar!",
            "__MACOSX/cem.zip": b"\0",
        },
    )
    found = {submission.student: submission for submission in find_submissions(path)}
    assert list(found["Ann_1_assignsubmission_file_"].kernels.values()) == [b"ann"]
    assert found["Bob_2_assignsubmission_file_"].kernels == {"twice.cu": b"bob"}
    assert found["cem"].kernels == {"twice.cu": b"cem"} and found["cem"].nickname == "Cem"
    assert "more than 20 MB" in found["dan"].refused and "neither a folder nor a zip" in found["eve.rar"].refused
    assert len(found) == 5


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("../ann/twice.cu", "is outside of the archive"),
        ("/ann/twice.cu", "absolute"),
        ("..\\twice.cu", "is outside of the archive"),
    ],
)
def test_an_archive_of_a_class_with_paths_outside_of_it(tmp_path: Path, name: str, says: str) -> None:
    with pytest.raises(GraderError, match=says):
        find_submissions(packed(tmp_path / "class.zip", {name: b"x"}))
    assert not list(tmp_path.rglob("twice.cu"))


def test_archives_of_a_class_that_are_hostile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "class.zip"
    with pytest.raises(GraderError, match="link or a special file"):
        find_submissions(packed(path, {"ann/twice.cu": b"/etc/passwd"}, external_attr=(stat.S_IFLNK | 0o777) << 16))
    with pytest.raises(GraderError, match="twice"):
        find_submissions(packed(path, [("ann/twice.cu", b"a"), ("ann/twice.cu", b"b")]))
    with pytest.raises(GraderError, match="cannot be read"):
        find_submissions(packed(path, {"ann": b"", "ann.cu": b"a", "ann.cu/twice.cu": b"b"}))
    monkeypatch.setattr(class_archive, "MOST_BYTES", 1000)
    with pytest.raises(GraderError, match="unpacks to more than"):
        find_submissions(packed(path, {f"ann/{i}.cu": b" " * 600 for i in range(2)}))
    monkeypatch.setattr(class_archive, "MOST_ENTRIES", 3)
    with pytest.raises(GraderError, match="more than 3 files"):
        find_submissions(packed(path, {f"ann/{i}.cu": b"" for i in range(4)}))
    path.write_bytes(b"PK nothing")
    with pytest.raises(GraderError, match="cannot be read"):
        find_submissions(path)


def test_one_students_archive_is_refused_as_in_a_class(tmp_path: Path) -> None:
    (submission,) = find_submissions(packed(tmp_path / "x.zip", {"submission.json": b"{}", "../twice.cu": b"x"}))
    assert "is outside of the archive" in submission.refused and not submission.kernels
    deep = b"[" * 1_000_000
    (submission,) = find_submissions(packed(tmp_path / "x.zip", {"submission.json": deep, "day01_a/twice.cu": b"x"}))
    assert submission.kernels == {"day01_a/twice.cu": b"x"}, (
        "submission.json, which the learner can edit, must not be read"
    )


@pytest.mark.parametrize(
    ("content", "name"),
    [
        (b"  The   Warpers \nsecond", "The Warpers"),
        (b"", ""),
        (b"\xff\xfe\x00", "\ufffd\ufffd"),
        (b"a\x1b[31mb\xe2\x80\xaec", "a [31mb c"),
        (b"x" * 10_000, "x" * 40),
    ],
)
def test_names_that_students_choose(tmp_path: Path, content: bytes, name: str) -> None:
    (tmp_path / "ann").mkdir()
    (tmp_path / "ann/twice.cu").write_text("x")
    (tmp_path / "ann/leaderboard.txt").write_bytes(content)
    assert find_submissions(tmp_path)[0].nickname == name
