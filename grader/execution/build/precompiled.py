"""Precompiled headers of the simulator for g++: parsing them again took a fifth of each build.

``-include`` makes the compiler begin with ``prelude.h``; it uses ``prelude.h.gch`` next to it if possible, and
otherwise parses the headers. A kernel's text still includes them, and gets no others: only headers at its head, before
any code, are precompiled.
"""

from __future__ import annotations

import re
from pathlib import Path

from grader.frontend.toolchain.cache import BuildCache, digest
from grader.frontend.toolchain.compilers import Compiler
from grader.frontend.toolchain.process import Command, run_command
from grader.simulator.library import INCLUDE_DIRS, include_flags

PRELUDE = "prelude.h"
_PRECOMPILED = f"{PRELUDE}.gch"
_ALWAYS = "cuda_runtime.h"
_SLOW = ("sim/ptx.h", "cuda_fp16.h", "cuda_bf16.h", "mma.h")
"""Headers that take a tenth of a second, in order. Few, because each combination takes 20 MB."""
_HALVES = ("cuda_fp16.h", "cuda_bf16.h")
USUAL = tuple((_ALWAYS, *names) for names in ((), _HALVES, ("sim/ptx.h",), ("sim/ptx.h", *_HALVES)))
"""The combinations with which most kernels of the course begin, including the demo's."""

# Includes, comments, and the lines around the text of a course header (see course_headers.py).
_HEAD = re.compile(
    r"""(?: [ \t]* (?://[^\n\\]*)? \n
    | \#include[ ] (?:<[^>\n]+>|"sim/ptx\.h") [ \t]* (?://[^\n\\]*)? \n
    | \#line[ ] [^\n]* \n
    | \#ifndef[ ] (LLMK_\w+) \n \#define[ ] \1 \n )*""",
    re.VERBOSE,
)


def headers_at_head(text: str) -> tuple[str, ...]:
    """Return the slow headers that a text includes before its first line of code."""
    head = _HEAD.match(text)
    found = set(re.findall(r'^#include [<"]([^>"]+)[>"]', head.group(), re.MULTILINE)) if head else set()
    return (_ALWAYS, *(name for name in _SLOW if name in found))


def precompiled(
    compiler: Compiler, flags: tuple[str, ...], headers: str, names: tuple[str, ...], cache: BuildCache
) -> Path:
    """Return the folder with ``prelude.h`` and its precompiled form for these flags, built if it is not in the cache.

    ``headers`` is the hash of the simulator's headers, ``names`` are the headers to include.
    """
    key = digest(["prelude", compiler.identity, *map(str, INCLUDE_DIRS), *flags, headers, *names])

    def compile_headers(folder: Path) -> None:
        (folder / PRELUDE).write_text("".join(f'#include "{name}"\n' for name in names), encoding="utf-8")
        argv = (*compiler.command, *flags, *include_flags(), "-x", "c++-header", PRELUDE, "-o", _PRECOMPILED)
        if run_command(Command(argv, folder)).returncode != 0:  # the kernel's own build will report the error
            (folder / _PRECOMPILED).unlink(missing_ok=True)

    return cache.get(key, compile_headers, "the simulator's headers")[0]


def refused(output: str) -> bool:
    """Return whether a compiler rejected the precompiled headers, for example because their address range is in use."""
    return _PRECOMPILED in output
