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
