"""Precompiled headers of the simulator for g++: parsing them again took a fifth of each build.

With ``-include``, the compiler reads ``prelude.h`` first, which includes some of the simulator's headers. It uses the
precompiled ``prelude.h.gch`` next to it if possible, and otherwise parses the headers. The kernel's own ``#include``
lines for these headers then have no effect, because of the include guards. A kernel must not get headers that it does
not include, so ``prelude.h`` has only headers that the kernel includes before its first line of code.
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
"""Headers that each take a tenth of a second to parse, in the order in which they are included.

The list is short, because each combination of precompiled headers takes 20 MB.
"""
_HALVES = ("cuda_fp16.h", "cuda_bf16.h")
USUAL = tuple((_ALWAYS, *names) for names in ((), _HALVES, ("sim/ptx.h",), ("sim/ptx.h", *_HALVES)))
"""The combinations of headers that are included by most kernels of the course and by the demo's kernel."""

# The head of a file: includes, comments, and the lines that course_headers.py writes before a course header's text.
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
    """Return the folder with ``prelude.h`` and its precompiled form for these flags. Build it on a cache miss.

    ``prelude.h`` includes the headers ``names``. ``headers`` is the hash of the simulator's headers.
    """
    key = digest(["prelude", compiler.identity, *map(str, INCLUDE_DIRS), *flags, headers, *names])

    def compile_headers(folder: Path) -> None:
        (folder / PRELUDE).write_text("".join(f'#include "{name}"\n' for name in names), encoding="utf-8")
        argv = (*compiler.command, *flags, *include_flags(), "-x", "c++-header", PRELUDE, "-o", _PRECOMPILED)
        if (
            run_command(Command(argv, folder)).returncode != 0
        ):  # raise no error, because building the kernel will report it
            (folder / _PRECOMPILED).unlink(missing_ok=True)

    return cache.get(key, compile_headers, "the simulator's headers")[0]


def refused(output: str) -> bool:
    """Return whether a compiler rejected the precompiled headers.

    g++ does so, for example, if the address range at which it must map them is in use.
    """
    return _PRECOMPILED in output
