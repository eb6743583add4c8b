"""Writes files whole or not at all."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from grader.setup.errors import GraderError


def replace_file(path: Path, content: bytes) -> None:
    """Write a file atomically, and create its folder. An existing file keeps its mode."""
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        aside.write_bytes(content)
        if path.exists():
            shutil.copymode(path, aside)
        os.replace(aside, path)
    finally:
        aside.unlink(missing_ok=True)


def write_file(path: str | Path, content: str | bytes) -> None:
    """Write a file that the user asked for; raise GraderError if that fails. Links and devices are not replaced."""
    path = Path(path)
    data = content.encode(errors="replace") if isinstance(content, str) else content
    try:
        if path.is_symlink() or (path.exists() and not path.is_file()):
            path.write_bytes(data)
        else:
            replace_file(path, data)
    except OSError as error:
        raise GraderError(f"cannot write {path}: {error.strerror or error}") from error


def make_folder(path: Path) -> None:
    """Create a folder; raise GraderError if that fails."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise GraderError(f"cannot write {path}: {error.strerror}") from error
