"""The course's headers, ``lessons/llmk/*.cuh``: code that several kernels share.

The text of each header replaces its ``#include`` before compilation. A file that includes headers is therefore still a
single text: compilers and sandboxes treat it like any other, the build cache notices each change of a header, and a
file next to a submission cannot shadow a header. ``#line`` directives keep the names and line numbers of both. The
equivalent by hand is ``nvcc -I lessons``.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable

from grader.frontend.tokens import Source
from grader.setup import shipped

FOLDER = shipped.COURSE / "lessons" / "llmk"

_DIRECTIVE = re.compile(r'#[ \t]*include[ \t]*(?:<[^>]*>|"[^"]*")')
_ONCE = re.compile(r"^#pragma once$", re.MULTILINE)


def names() -> list[str]:
    """Return the headers that a kernel file may include, such as ``llmk/reduce.cuh``."""
    return sorted(f"{FOLDER.name}/{path.name}" for path in FOLDER.glob("*.cuh"))


def header_name(file: str) -> str:
    """Return the header that a path in a compiler's message refers to; empty if it is not one of the course's."""
    folder, name = file.split("/")[-2:] if "/" in file else ("", file)
    return f"{folder}/{name}" if folder == FOLDER.name and f"{folder}/{name}" in names() else ""


def with_headers(text: str, source: Source, name: str, translate: Callable[[str], str] = str) -> str:
    """Return ``text`` with each ``#include`` replaced by the header's text, after ``translate`` is applied to it.

    ``source`` is the original file; ``text`` may be a translation that keeps its lines. ``name`` is the file name that
    messages use.
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
    """Return a header's text with those that it includes. One header may be included several times."""
    original = (FOLDER.parent / name).read_text(encoding="utf-8")
    guard = re.sub(r"\W", "_", name).upper()
    text = with_headers(_ONCE.sub("", translate(original)), _read(original), name, translate)
    return f"#ifndef {guard}\n#define {guard}\n{line_directive(1, name)}{text}\n#endif\n"


@functools.lru_cache(maxsize=32)
def _read(text: str) -> Source:
    return Source(text)
