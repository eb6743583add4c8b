"""Builds the small C++ programs that confine a process and start another program in it."""

from __future__ import annotations

import functools
from pathlib import Path

from grader.frontend.toolchain.cache import BuildCache, digest, open_cache
from grader.frontend.toolchain.compilers import find_cxx
from grader.frontend.toolchain.process import Command, run_command
from grader.setup.errors import GraderError

CONFINE = Path(__file__).parent / "source"
"""The folder with ``confine.h`` and its sources, which other programs also include."""

PROGRAMS = {"compile": ("compile", "limits", "landlock", "system_calls"), "drop_root": ("drop_root",)}
"""The source files of each program, by the program's name."""

NO_LIMITS = ("0", "0", "0")
"""Arguments of the program ``compile`` that leave memory, processor time and processes unlimited."""


def build_program(name: str, cache: BuildCache | None = None) -> Path:
    """Return the executable of a program. Build it if it is not in the cache."""
    return _build(name, cache or open_cache())


@functools.cache
def _build(name: str, cache: BuildCache) -> Path:
    compiler = find_cxx()
    sources = [str(CONFINE / f"{source}.cpp") for source in PROGRAMS[name]]
    key = digest([name, compiler.identity, *(Path(source).read_bytes() for source in sources)])

    def build(folder: Path) -> None:
        done = run_command(
            Command((*compiler.command, "-std=c++17", "-O1", *sources, "-Wl,--as-needed", "-o", name), folder)
        )
        if done.returncode != 0:
            raise GraderError(f"the program {name} of the sandbox does not compile:\n{done.output.strip()}")

    entry, _ = cache.get(key, build, "the jail")
    return entry / name
