"""Builds the grader's own C++ programs, among them those that confine a process and start another program in it."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path

from grader.frontend.toolchain.cache import BuildCache, digest, digest_folder, open_cache
from grader.frontend.toolchain.compilers import Compiler, find_cxx
from grader.frontend.toolchain.process import Command, run_command
from grader.setup.errors import GraderError

CONFINE = Path(__file__).parent / "source"
"""The folder with ``confine.h`` and its sources, which other programs also include."""

CONFINEMENT = [CONFINE / f"{name}.cpp" for name in ("limits", "landlock", "system_calls")]
"""The sources that confine the process they are compiled into."""

PROGRAMS = {"compile": [CONFINE / "compile.cpp", *CONFINEMENT], "drop_root": [CONFINE / "drop_root.cpp"]}
"""The source files of each program, by the program's name."""

NO_LIMITS = ("0", "0", "0")
"""Arguments of the program ``compile`` that leave memory, processor time and processes unlimited."""


def build_program(name: str, cache: BuildCache | None = None) -> Path:
    """Return the executable of a program. Build it if it is not in the cache."""
    return _build(name, cache or open_cache())


@functools.cache
def _build(name: str, cache: BuildCache) -> Path:
    flags = ("-std=c++17", "-O1", "-Wl,--as-needed")
    return compiled(name, f"the program {name} of the sandbox", find_cxx(), flags, PROGRAMS[name], cache=cache)


def compiled(
    name: str,
    what: str,
    compiler: Compiler,
    flags: Sequence[str],
    sources: Sequence[Path],
    libraries: Sequence[str] = (),
    cache: BuildCache | None = None,
) -> Path:
    """Return a program or library. Compile it if it is not in the cache.

    ``name`` is its file name, ``what`` describes it in messages. ``libraries`` are options after the sources.
    """
    arguments = (*flags, *map(str, sources), "-o", name, *libraries)
    folders = sorted({source.parent for source in sources})  # with the headers beside the sources
    listed = [source.name for source in sources]
    key = digest([name, compiler.identity, *flags, *listed, *libraries, digest_folder(folders)])

    def build(folder: Path) -> None:
        done = run_command(Command((*compiler.command, *arguments), folder))
        if done.returncode != 0:
            raise GraderError(
                f"{what} does not compile with {compiler}:\n{done.output.strip()}",
                "`grader doctor` shows this machine's tools.",
            )

    entry, _ = (cache or open_cache()).get(key, build, what)
    return entry / name
