"""Rules for file names in a submitted archive."""

from __future__ import annotations

import re
import stat
import zipfile
from pathlib import PurePosixPath

COURSE = "exercises/course.toml"
"""The file that identifies a copy of the course."""


class Refused(Exception):
    """A submission that is rejected; the text is the reason."""


def checked_name(member: zipfile.ZipInfo) -> str:
    """Return the name of an archive member; raise ``Refused`` if the name is not allowed.

    Slashes replace the backslashes that Windows PowerShell's Compress-Archive writes.
    """
    # Python cuts names at a null byte: check the original name.
    name = _decoded(member).replace("\\", "/")
    parts = PurePosixPath(name).parts
    mode = member.external_attr >> 16
    if "\0" in name or any(ord(c) < 32 or ord(c) == 127 for c in name) or not name:
        raise Refused("a name in it has control characters")
    if re.match(r"[A-Za-z]:", name):
        raise Refused(f"the name {shown(name)} is for another operating system")
    if name.startswith("/"):
        raise Refused(f"the name {shown(name)} is an absolute path")
    if ".." in parts:
        raise Refused(f"the name {shown(name)} is outside of the archive")
    if mode and stat.S_IFMT(mode) not in (0, stat.S_IFREG, stat.S_IFDIR):
        raise Refused(f"{shown(name)} is a link or a special file")
    if member.flag_bits & 1:
        raise Refused("it is encrypted")
    return name


def _decoded(member: zipfile.ZipInfo) -> str:
    """Return a member's original name. macOS and Ruby (Canvas) write UTF-8 without the flag that says so."""
    name = member.orig_filename
    if name.isascii() or member.flag_bits & 0x800:
        return name
    try:
        return name.encode("cp437").decode()  # Python has decoded it as code page 437
    except UnicodeError:
        return name


def shown(name: str) -> str:
    """Shorten a name from an archive, and escape what is unsafe to print."""
    return ascii(name[:80])
