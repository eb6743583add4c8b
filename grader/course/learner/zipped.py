"""Reproducible zip files: the same files always give the same bytes."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping

EPOCH = (1980, 1, 1, 0, 0, 0)
"""The earliest time that a zip file can hold."""


def zipped(files: Mapping[str, bytes], programs: frozenset[str] = frozenset()) -> bytes:
    """Return an archive of files by their path in it, sorted. ``programs`` are executable."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for place, content in sorted(files.items()):
            member = zipfile.ZipInfo(place, EPOCH)
            member.create_system = 3  # always "Unix", as it determines the meaning of the file mode
            member.external_attr = (0o100755 if place in programs else 0o100644) << 16
            archive.writestr(member, content, zipfile.ZIP_DEFLATED)
    return buffer.getvalue()
