"""The course's own headers, ``lessons/llmk/*.cuh``: what several kernels share.

Where a kernel file includes one, its text takes the place of the ``#include`` before anything is compiled. A file that
includes headers is thus still one text: every compiler and every jail takes it as it takes any other, the build cache
sees each change of a header, and no file beside a submission can stand in for one. ``#line`` directives keep the
names and lines of both. By hand ``nvcc -I lessons`` does the same.
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
    """What a kernel file may include: ``llmk/reduce.cuh`` and the like."""
    return sorted(f"{FOLDER.name}/{path.name}" for path in FOLDER.glob("*.cuh"))


def header_name(file: str) -> str:
    """The header that a compiler's record of a source file means, a path that ends in its name; empty if it is none."""
    folder, name = file.split("/")[-2:] if "/" in file else ("", file)
    return f"{folder}/{name}" if folder == FOLDER.name and f"{folder}/{name}" in names() else ""


def with_headers(text: str, source: Source, name: str, translate: Callable[[str], str] = str) -> str:
    """``text`` with the text of each header in the place of its ``#include``, ``translate`` applied to that.

    ``source`` is the file as it was written; ``text`` may be a translation that keeps its lines. ``name`` is what
    messages call it.
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
    """What makes compilers call the next line by this number and file name."""
    quoted = name.replace("\\", "\\\\").replace('"', '\\"')
    return f'#line {number} "{quoted}"\n'


def _spliced(name: str, translate: Callable[[str], str]) -> str:
    """A header's text, the headers that it includes in it. A file and its headers may name one more than once."""
    original = (FOLDER.parent / name).read_text(encoding="utf-8")
    guard = re.sub(r"\W", "_", name).upper()
    text = with_headers(_ONCE.sub("", translate(original)), _read(original), name, translate)
    return f"#ifndef {guard}\n#define {guard}\n{line_directive(1, name)}{text}\n#endif\n"


@functools.lru_cache(maxsize=32)
def _read(text: str) -> Source:
    return Source(text)
