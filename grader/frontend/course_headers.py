"""Inserts the course's headers, ``lessons/llmk/*.cuh``, into the kernel files that include them.

The text of each header replaces its ``#include`` before compilation. The compiler therefore needs no other file, the
build cache notices each change of a header, and a file next to a submission cannot take the place of a header.
``#line`` directives keep the file names and line numbers in messages. Without the grader, ``nvcc -I lessons`` has the
same effect.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable

from grader.frontend.tokens import Source
from grader.setup import shipped

FOLDER = shipped.COURSE / "lessons" / "llmk"

_DIRECTIVE = re.compile(r'(?:#|%:)[ \t]*include[ \t]*(?:<[^>]*>|"[^"]*")')
_ONCE = re.compile(r"^#pragma once$", re.MULTILINE)


def names() -> list[str]:
    """Return the names of the course's headers, such as ``llmk/reduce.cuh``."""
    return sorted(f"{FOLDER.name}/{path.name}" for path in FOLDER.glob("*.cuh"))


def header_name(file: str) -> str:
    """Return the name of the course's header that a path in a compiler's message refers to; empty for other files."""
    folder, name = file.split("/")[-2:] if "/" in file else ("", file)
    known = folder == FOLDER.name and name.endswith(".cuh") and (FOLDER / name).is_file()
    return f"{folder}/{name}" if known else ""


def with_headers(text: str, source: Source, name: str, translate: Callable[[str], str] = str) -> str:
    """Return ``text`` with each ``#include`` of a course header replaced by the header's translated text.

    ``source`` is the original file. ``text`` is the same file, or a translation of it with the same lines. ``name`` is
    the file name for compiler messages. ``translate`` translates a header's text.
    """
    lines = text.split("\n")
    known = set(names())
    for include in source.includes:
        if include.name in known:
            number = source.line(include.start)
            rest = _DIRECTIVE.sub("", lines[number - 1], count=1)
            lines[number - 1] = f"{_spliced(include.name, translate)}{line_directive(number, name)}{rest}"
    return "\n".join(lines)


def line_directive(number: int, name: str) -> str:
    """Return a ``#line`` directive that sets the number and file name of the next line."""
    quoted = name.replace("\\", "\\\\").replace('"', '\\"')
    return f'#line {number} "{quoted}"\n'


def _spliced(name: str, translate: Callable[[str], str]) -> str:
    """Return a header's text, with the headers that it includes, between guards against a second inclusion."""
    original = (FOLDER.parent / name).read_text(encoding="utf-8")
    guard = re.sub(r"\W", "_", name).upper()
    text = with_headers(_ONCE.sub("", translate(original)), _read(original), name, translate)
    return f"#ifndef {guard}\n#define {guard}\n{line_directive(1, name)}{text}\n#endif\n"


@functools.lru_cache(maxsize=32)
def _read(text: str) -> Source:
    return Source(text)
