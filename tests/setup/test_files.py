"""Files that a user asks for are written whole, and where that is not possible, written in place."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from grader.setup import files
from grader.setup.errors import GraderError
from grader.setup.files import write_file


def test_a_file_is_replaced_with_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "new" / "page.html"
    write_file(path, "first")
    path.chmod(0o640)
    write_file(path, "second")
    assert path.read_text() == "second" and path.stat().st_mode & 0o777 == 0o640
    assert os.listdir(path.parent) == ["page.html"]


def test_links_and_devices_are_not_replaced(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    target.touch()
    link.symlink_to(target)
    write_file(link, "text")
    assert link.is_symlink() and target.read_text() == "text"
    write_file("/dev/null", "text")


@pytest.mark.parametrize("number", ["EACCES", "EBUSY"])
def test_a_file_that_cannot_be_replaced_is_overwritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: str
) -> None:
    """Its folder may not be writable, or the file is the target of a mount."""

    def refuse(path: Path, content: bytes) -> None:
        raise OSError(getattr(files.errno, number), "refused")

    monkeypatch.setattr(files, "replace_file", refuse)
    path = tmp_path / "results.json"
    with pytest.raises(GraderError, match="refused"):
        write_file(path, "text")
    path.touch()
    write_file(path, "text")
    assert path.read_text() == "text"


def test_a_full_disk_leaves_the_file_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "results.json"
    path.write_text("old")

    def fill(self: Path, content: bytes) -> None:
        raise OSError(files.errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", fill)
    with pytest.raises(GraderError, match="No space left"):
        write_file(path, "text")
    assert path.read_text() == "old"


def test_errors_say_what_is_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    with pytest.raises(GraderError, match="Not a directory"):
        write_file(path / "page.html", "text")
    monkeypatch.setattr(files.os, "access", lambda path, mode: False)
    with pytest.raises(GraderError, match="Permission denied"):
        write_file(path, "text")
    assert path.read_text() == "old"
