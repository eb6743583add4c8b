"""Zip files that are the same, byte for byte, whenever they are made from the same files."""

from __future__ import annotations

import io
import os
import zipfile
from collections.abc import Mapping
from pathlib import Path

from grader.setup.errors import GraderError

EPOCH = (1980, 1, 1, 0, 0, 0)
"""The earliest time that a zip file can hold."""


def zipped(files: Mapping[str, bytes], programs: frozenset[str] = frozenset()) -> bytes:
    """An archive of files by their place in it, sorted. ``programs`` may be executed."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for place, content in sorted(files.items()):
            member = zipfile.ZipInfo(place, EPOCH)
            member.create_system = 3  # Unix, whatever this machine is: it gives the mode its meaning
            member.external_attr = (0o100755 if place in programs else 0o100644) << 16
            archive.writestr(member, content, zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


def write(path: Path, content: bytes) -> None:
    """Whole or not at all."""
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        aside.write_bytes(content)
        os.replace(aside, path)
    except OSError as error:
        raise GraderError(f"cannot write {path}: {error.strerror}") from error
