"""Exercise files are written atomically, and a learner's earlier version is always kept."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from grader.course import Course, Entry
from grader.course.learner import kernel_file
from grader.setup.errors import GraderError
from tests.small_course import write_course


@pytest.fixture
def course(tmp_path: Path) -> Course:
    write_course(tmp_path, {"day01_a": ""}, {"day01_a/add": 'title = "Add"\nkind = "implement"\npoints = 1'})
    return Course(tmp_path)


@pytest.fixture
def entry(course: Course) -> Entry:
    return course.exercises[0]


def backups(entry: Entry) -> dict[str, str]:
    return {path.name: path.read_text() for path in sorted(entry.skeleton.parent.glob("*.bak"))}


def test_a_changed_file_is_backed_up_and_a_generated_one_is_not(course: Course, entry: Entry) -> None:
    file = entry.skeleton
    file.write_text("// an evening's work\n")
    assert kernel_file.write(course, entry, "one\n") == file.with_name("add.cu.1.bak")
    assert kernel_file.write(course, entry, "two\n") is None
    file.write_text("in an editor\n")
    assert kernel_file.write(course, entry, "three\n") == file.with_name("add.cu.2.bak")
    assert file.read_text() == "three\n"
    assert backups(entry) == {"add.cu.1.bak": "// an evening's work\n", "add.cu.2.bak": "in an editor\n"}


def test_writing_the_same_text_changes_nothing(course: Course, entry: Entry) -> None:
    os.utime(entry.skeleton, ns=(1, 1))
    assert kernel_file.write(course, entry, entry.skeleton.read_text()) is None
    assert entry.skeleton.stat().st_mtime_ns == 1 and not backups(entry)


def test_a_link_and_its_mode_stay(course: Course, entry: Entry, tmp_path: Path) -> None:
    real = tmp_path / "drive.cu"
    real.write_text("mine\n")
    real.chmod(0o640)
    entry.skeleton.unlink()
    entry.skeleton.symlink_to(real)
    kernel_file.write(course, entry, "new\n")
    assert entry.skeleton.is_symlink() and real.read_text() == "new\n" and real.stat().st_mode & 0o777 == 0o640


def test_a_failed_write_loses_nothing(course: Course, entry: Entry, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    entry.skeleton.write_text("mine\n")
    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(GraderError, match="No space left"):
        kernel_file.write(course, entry, "new\n")
    assert entry.skeleton.read_text() == "mine\n"
    assert not list(entry.skeleton.parent.glob(".add*"))
