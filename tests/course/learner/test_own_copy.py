"""``grader init`` writes and updates the course, and never loses a learner's work."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from grader.course import Course
from grader.course.learner import own_copy, pristine
from grader.course.manifest import FILE
from grader.setup.errors import GraderError
from tests.small_course import write_course

SKELETON, SOLUTION = "exercises/day01_start/first.cu", "solutions/day01_start/first.cu"
TASKS = "exercises/day01_start/tasks.py"
LESSON = "lessons/day01_start/lesson.ipynb"


@pytest.fixture
def course(tmp_path: Path) -> Path:
    """Return the course that the package contains."""
    root = tmp_path / "course"
    listed = {"day01_start/first": 'title = "The first"\nkind = "implement"\npoints = 10'}
    write_course(root, {"day01_start": "# version 1\n"}, listed)
    for name in (SKELETON, SOLUTION, LESSON):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(f"// {name}, version 1\n")
    return root


@pytest.fixture
def mine(course: Path, tmp_path: Path) -> Path:
    """Return a learner's copy of the course."""
    own_copy.write(tmp_path / "mine", course)
    return tmp_path / "mine"


def everything(root: Path) -> dict[str, str]:
    """Return the files of a course with their contents, without the grader's files in .grader."""
    paths = [path for path in root.rglob("*") if path.is_file() and ".grader" not in path.parts]
    return {path.relative_to(root).as_posix(): path.read_text() for path in paths}


def test_a_new_copy_is_the_course(course: Path, mine: Path) -> None:
    assert everything(mine) == everything(course)
    assert SKELETON in everything(mine)
    assert own_copy.write(mine, course) == own_copy.Done()


def test_generated_files_are_not_copied(course: Path, tmp_path: Path) -> None:
    before = everything(course)
    for name in ("__pycache__/tasks.cpython-312.pyc", ".ipynb_checkpoints/a.ipynb", "first.cu.1.bak", "first.cu.new"):
        path = course / "exercises/day01_start" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("left behind")
    own_copy.write(tmp_path / "mine", course)
    assert everything(tmp_path / "mine") == before


def test_unchanged_files_are_updated(course: Path, mine: Path) -> None:
    (course / TASKS).write_text("# version 2\n")
    (course / "lessons/faq.md").write_text("new\n")
    (course / LESSON).unlink()
    done = own_copy.write(mine, course)
    assert done == own_copy.Done(written=["lessons/faq.md"], updated=[TASKS], removed=[LESSON])
    assert everything(mine) == everything(course)


def test_a_file_that_the_learner_changed_is_kept(course: Path, mine: Path) -> None:
    (mine / SKELETON).write_text("my work\n")
    (mine / "exercises/day01_start/mine.cu").write_text("my own file\n")
    (course / TASKS).write_text("# version 2\n")
    assert own_copy.write(mine, course) == own_copy.Done(updated=[TASKS])
    assert (mine / SKELETON).read_text() == "my work\n"
    assert (mine / "exercises/day01_start/mine.cu").read_text() == "my own file\n"


def test_a_file_that_both_changed_is_kept_and_the_new_one_is_put_beside_it(course: Path, mine: Path) -> None:
    (mine / SKELETON).write_text("my work\n")
    (course / SKELETON).write_text("// version 2\n")
    assert own_copy.write(mine, course).beside == {SKELETON: f"{SKELETON}.new"}
    assert (mine / SKELETON).read_text() == "my work\n"
    assert (mine / f"{SKELETON}.new").read_text() == "// version 2\n"
    assert own_copy.write(mine, course) == own_copy.Done(), "a second run must not repeat its messages"
    (mine / f"{SKELETON}.new").write_text("edited by the learner\n")
    (course / SKELETON).write_text("// version 3\n")
    assert own_copy.write(mine, course).beside == {SKELETON: f"{SKELETON}.2.new"}
    assert (mine / f"{SKELETON}.new").read_text() == "edited by the learner\n"
    assert (mine / f"{SKELETON}.2.new").read_text() == "// version 3\n"


def test_a_new_file_of_the_course_that_the_learner_has_already(course: Path, mine: Path) -> None:
    for root, text in ((mine, "mine\n"), (course, "the course's\n")):
        (root / "solutions/day01_start/second.cu").write_text(text)
    assert list(own_copy.write(mine, course).beside) == ["solutions/day01_start/second.cu"]
    assert (mine / "solutions/day01_start/second.cu").read_text() == "mine\n"


def test_files_that_the_course_removed(course: Path, mine: Path) -> None:
    (mine / SKELETON).write_text("my work\n")
    for name in (SKELETON, SOLUTION):
        (course / name).unlink()
    assert own_copy.write(mine, course) == own_copy.Done(removed=[SOLUTION], left=[SKELETON])
    assert (mine / SKELETON).read_text() == "my work\n" and not (mine / SOLUTION).exists()


def test_files_that_the_learner_removed_are_restored(course: Path, mine: Path) -> None:
    (mine / SOLUTION).unlink()
    assert own_copy.write(mine, course) == own_copy.Done(written=[SOLUTION])
    assert everything(mine) == everything(course)


def test_a_link_of_the_learners_is_not_followed(course: Path, mine: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere.cu"
    elsewhere.write_bytes((mine / SKELETON).read_bytes())
    (mine / SKELETON).unlink()
    (mine / SKELETON).symlink_to(elsewhere)
    (course / SKELETON).write_text("// version 2\n")
    assert list(own_copy.write(mine, course).beside) == [SKELETON]
    assert (mine / SKELETON).is_symlink() and "version 1" in elsewhere.read_text()


@pytest.mark.parametrize("text", ["", "not JSON", "[]", '{"files": 3}', '{"files": {"../secret": "x"}}'])
def test_without_a_manifest_that_can_be_read_nothing_is_lost(course: Path, mine: Path, text: str) -> None:
    own_copy.manifest_path(mine).write_text(text)
    (mine / SKELETON).write_text("my work\n")
    (course / TASKS).write_text("# version 2\n")
    done = own_copy.write(mine, course)
    assert sorted(done.beside) == [SKELETON, TASKS] and not done.updated
    assert (mine / SKELETON).read_text() == "my work\n"


def test_a_manifest_names_no_file_outside_the_course(course: Path, mine: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes((mine / SOLUTION).read_bytes())
    text = own_copy.manifest_path(mine).read_text()
    for name in ("exercises/../../secret", str(secret)):
        own_copy.manifest_path(mine).write_text(text.replace(SOLUTION, name))
        own_copy.write(mine, course)
        assert secret.exists()


@pytest.mark.parametrize("update", [False, True])
@pytest.mark.parametrize("problem", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()])
def test_whatever_interrupts_it_the_next_run_finishes_it(
    course: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, problem: BaseException, update: bool
) -> None:
    mine = tmp_path / "mine"
    if update:
        own_copy.write(mine, course)
        (mine / LESSON).write_text("my notes\n")
        for name in everything(course):
            if name != FILE:
                (course / name).write_text(f"version 2 of {name}\n")
    real, stop = os.replace, 0

    def replace(source: Path, target: Path) -> None:
        nonlocal calls
        calls += 1
        if calls == stop:
            raise problem
        real(source, target)

    monkeypatch.setattr(os, "replace", replace)
    while True:
        calls, stop = 0, stop + 1
        try:
            own_copy.write(mine, course)
            break
        except (GraderError, KeyboardInterrupt):
            assert not list(mine.rglob("*.tmp")), "temporary files were left behind"
            now, whole = everything(mine), everything(course)
            assert update or FILE not in now or now == whole, "an incomplete course must not be accepted as a course"
            assert all(text in whole.values() or "version 1" in text or text == "my notes\n" for text in now.values())
    assert stop > 3
    expected = everything(course)
    if update:
        expected |= {LESSON: "my notes\n", f"{LESSON}.new": expected[LESSON]}
    assert everything(mine) == expected


def test_folders_that_are_refused(course: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.tex").write_text("")
    for place, says in (
        (tmp_path / "file", "is a file"),
        (tmp_path / "full", r"is not empty: it has thesis\.tex"),
        (course, "that `grader init` did not write"),
        (tmp_path / "file" / "below", "cannot write .*Not a directory"),
    ):
        before = everything(tmp_path)
        with pytest.raises(GraderError, match=says):
            own_copy.write(place, course)
        assert everything(tmp_path) == before


def test_an_environment_may_be_in_the_folder_already(course: Path, tmp_path: Path) -> None:
    (tmp_path / "mine" / ".venv").mkdir(parents=True)
    own_copy.write(tmp_path / "mine", course)
    assert everything(tmp_path / "mine") == everything(course)


def test_reset_gives_the_newest_skeleton_back(course: Path, mine: Path) -> None:
    (mine / SKELETON).write_text("my work\n")
    (course / SKELETON).write_text("// version 2\n")
    own_copy.write(mine, course)
    entry = Course(mine).find("first")
    found = pristine.find(Course(mine), entry)
    assert found and found.content == b"// version 2\n"
    assert not pristine.untouched(Course(mine), entry)
