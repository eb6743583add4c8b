"""Writes several files. On an error, it restores the previous state."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path

from grader.setup.errors import GraderError
from grader.setup.files import replace_file


def write_all(new: Mapping[Path, str], changed: Mapping[Path, str]) -> None:
    """Create the files ``new``, which must not exist, and overwrite the files ``changed``. Undo both on an error."""
    for path in new:
        if path.exists():
            raise GraderError(
                f"{path} exists already, and nothing was written", "Move this file away, or choose another name."
            )
    before = {path: path.read_bytes() if path.exists() else None for path in changed}
    folders: list[Path] = []
    written: list[Path] = []
    try:
        for path, text in {**new, **changed}.items():
            for folder in reversed([folder for folder in path.parents if not folder.exists()]):
                folder.mkdir()
                folders.append(folder)
            written.append(path)
            replace_file(path, text.encode())
    except BaseException as error:
        for path in reversed(written):
            content = before.get(path)
            with contextlib.suppress(OSError):
                if content is None:
                    path.unlink(missing_ok=True)
                else:
                    replace_file(path, content)
        for folder in reversed(folders):
            with contextlib.suppress(OSError):
                folder.rmdir()
        if isinstance(error, OSError):
            raise GraderError(f"cannot write {error.filename}: {error.strerror}; nothing was changed") from error
        raise
