"""Archives for tests, with any names and headers."""

from __future__ import annotations

import io
import warnings
import zipfile
from collections.abc import Iterable, Mapping
from typing import Any

Members = Mapping[str, bytes | str] | Iterable[tuple[str, bytes | str]]


def zip_of(members: Members, **header: Any) -> bytes:
    """Return an archive. Names are written as they are, also twice. ``header``: fields of each member's header."""
    buffer = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(buffer, "w") as archive:
        warnings.simplefilter("ignore")  # about duplicate names
        for name, content in members.items() if isinstance(members, Mapping) else members:
            info = zipfile.ZipInfo()
            info.filename = info.orig_filename = name
            for field, value in header.items():
                setattr(info, field, value)
            archive.writestr(info, content, zipfile.ZIP_DEFLATED)
    return buffer.getvalue()
