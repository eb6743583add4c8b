"""Submissions that attack the grader, or the people and programs that read its reports."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

from tests.classroom.archives import zip_of

SCRIPT = "<script>document.title = 'run'</script>"
MARKUP = f"\"'><img src=x onerror=alert(1)></pre>{SCRIPT}"


def _folder(kernel: str, **files: str) -> Callable[[Path, str], None]:
    def put(place: Path, name: str) -> None:
        place.mkdir()
        (place / f"{name}.cu").write_text(kernel)
        for file, text in files.items():
            (place / f"{file}.txt").write_text(text)

    return put


def _archive(*members: tuple[str, bytes], mode: int = 0) -> Callable[[Path, str], None]:
    def put(place: Path, name: str) -> None:
        named = [(member.format(name=name), content) for member, content in members]
        Path(f"{place}.zip").write_bytes(zip_of(named, external_attr=mode << 16))

    return put


def _pipe(place: Path, name: str) -> None:
    place.mkdir()
    os.mkfifo(place / f"{name}.cu")


def _link(place: Path, name: str) -> None:
    place.mkdir()
    (place / f"{name}.cu").symlink_to("/etc/passwd")


NAMES = [MARKUP.replace("/", "\u2215"), '=HYPERLINK("http:x","y")', "{{ 7 * 7 }}{% raw %}", "a\u202eb\x1b[2J\n,c"]
"""Names of students, as a learning system may pass them on."""
KINDS: list[Callable[[Path, str], None]] = [
    _folder(f"// {MARKUP}\nthis is no C++ {MARKUP}\n", leaderboard=MARKUP),
    _archive(("../../{name}.cu", b"int escaped;")),
    _archive(("{name}.cu", b" " * (30 << 20))),
    _archive(("{name}.cu", b"int a;"), ("{name}.cu", b"int b;")),
    _archive(("{name}.cu", b"/etc/passwd"), mode=stat.S_IFLNK | 0o777),
    _folder("#include </etc/passwd>\n" + "(" * 5000 + "\n"),
    _pipe,
    _link,
]


def hand_in(folder: Path, exercise: str, count: int) -> list[str]:
    """Write ``count`` hostile submissions to a class's folder, and return the students' names."""
    students = []
    for i in range(count):
        student = f"{NAMES[i % len(NAMES)]}{i}"
        KINDS[i % len(KINDS)](folder / student, exercise)
        students.append(student)
    return students
