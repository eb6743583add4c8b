"""Files that root brings within reach of the jail's user."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from grader.jail import staging


@pytest.mark.skipif(os.geteuid() != 0, reason="only root copies files for the jail's user")
def test_a_folder_is_copied_again_only_when_a_file_in_it_changed(tmp_path: Path) -> None:
    """The build cache marks an entry as used by the folder's own time."""
    folder = tmp_path / "entry"
    folder.mkdir()
    tmp_path.chmod(0o700)  # out of reach for others
    file = folder / "file"
    file.write_text("one")
    os.utime(file, ns=(0, 10**9))
    first = staging.reachable(folder)
    assert first != folder and (first / "file").read_text() == "one"
    os.utime(folder, ns=(0, 5 * 10**9))
    assert staging.reachable(folder) == first
    file.write_text("two")
    os.utime(file, ns=(0, 2 * 10**9))
    second = staging.reachable(folder)
    assert second != first and (second / "file").read_text() == "two"


def test_folders_of_the_dead_go_and_those_of_other_containers_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where /tmp is shared a process that cannot be seen here may live: its folder is locked."""
    monkeypatch.setattr(staging.tempfile, "tempdir", str(tmp_path))
    nobody = 2**22 + 1  # no process has such a number
    dead, elsewhere = tmp_path / f"grader-jail-{nobody}.dead", tmp_path / f"grader-jail-{nobody}.elsewhere"
    alive = tmp_path / f"grader-jail-{os.getpid()}.alive"
    for folder in (dead, elsewhere, alive):
        folder.mkdir()
    held = staging._locked(elsewhere)
    try:
        mine = staging.own_folder.__wrapped__()
        with pytest.raises(BlockingIOError):
            staging._locked(mine)
    finally:
        os.close(held)
    assert sorted(tmp_path.iterdir()) == sorted([elsewhere, alive, mine])
