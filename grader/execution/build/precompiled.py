"""The simulator's headers as g++ keeps them once it has read them: reading them again took a fifth of each build.

``-include`` makes the compiler begin with ``prelude.h``; it takes ``prelude.h.gch`` beside that instead where it can,
and reads the headers where it cannot. A kernel's text still includes them, and gets nothing that it does not: only
headers that stand at its head, before any of its own code, are taken ahead.
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
"""Headers that take a tenth of a second, in their order. Few, so that there are few sets of them: each takes 20 MB."""
_HALVES = ("cuda_fp16.h", "cuda_bf16.h")
USUAL = tuple((_ALWAYS, *names) for names in ((), _HALVES, ("sim/ptx.h",), ("sim/ptx.h", *_HALVES)))
"""The sets that most kernels of the course begin with, the demo's among them."""

# Includes, comments, and what stands around the text of a course header (see course_headers.py).
_HEAD = re.compile(
    r"""(?: [ \t]* (?://[^\n\\]*)? \n
    | \#include[ ] (?:<[^>\n]+>|"sim/ptx\.h") [ \t]* (?://[^\n\\]*)? \n
    | \#line[ ] [^\n]* \n
    | \#ifndef[ ] (LLMK_\w+) \n \#define[ ] \1 \n )*""",
    re.VERBOSE,
)


def headers_at_head(text: str) -> tuple[str, ...]:
    """Return the simulator's headers that a text includes before its first line of code, as far as precompiling pays."""
    head = _HEAD.match(text)
    found = set(re.findall(r'^#include [<"]([^>"]+)[>"]', head.group(), re.MULTILINE)) if head else set()
    return (_ALWAYS, *(name for name in _SLOW if name in found))


def precompiled(
    compiler: Compiler, flags: tuple[str, ...], headers: str, names: tuple[str, ...], cache: BuildCache
) -> Path:
    """Return the folder with ``prelude.h`` and its precompiled form for these flags, built now if not in the cache.

    ``headers`` is the hash of the simulator's headers, ``names`` are those to include.
    """
    key = digest(["prelude", compiler.identity, *map(str, INCLUDE_DIRS), *flags, headers, *names])

    def compile_headers(folder: Path) -> None:
        (folder / PRELUDE).write_text("".join(f'#include "{name}"\n' for name in names), encoding="utf-8")
        argv = (*compiler.command, *flags, *include_flags(), "-x", "c++-header", PRELUDE, "-o", _PRECOMPILED)
        if run_command(Command(argv, folder)).returncode != 0:  # the kernel's own build will say what is wrong
            (folder / _PRECOMPILED).unlink(missing_ok=True)

    return cache.get(key, compile_headers, "the simulator's headers")[0]


def refused(output: str) -> bool:
    """Return whether a compiler failed over precompiled headers, for example because their memory address is taken."""
    return _PRECOMPILED in output
