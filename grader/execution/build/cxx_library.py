"""A small library that replaces libstdc++ at link time, because ld takes long to read libstdc++'s 6000 symbols.

The small library has the soname of libstdc++, and declares only the functions that most kernels call. A kernel that
needs another function is linked again, with libstdc++ itself. At run time every kernel uses libstdc++.
"""

from __future__ import annotations

from pathlib import Path

from grader.frontend.toolchain.cache import BuildCache, digest
from grader.frontend.toolchain.compilers import Compiler
from grader.frontend.toolchain.process import Command, run_command
from grader.setup.errors import BuildError

_NAME = "libstdc++.so.6"
FUNCTIONS = (
    *("__gxx_personality_v0", "__cxa_begin_catch", "__cxa_end_catch", "__cxa_throw", "_ZSt9terminatev"),
    *("_ZSt20__throw_length_errorPKc", "_Znwm", "_ZdlPv", "_ZdlPvm"),
)


def few_functions(compiler: Compiler, cache: BuildCache) -> Path:
    """Return the folder of the small library. Build it if it is not in the cache."""
    text = "".join(f".globl {name}\n.type {name}, %function\n{name}:\n" for name in FUNCTIONS)

    def build(folder: Path) -> None:
        (folder / "functions.s").write_text(f".text\n{text}")
        argv = (*compiler.command, "-shared", "-nostdlib", "functions.s", f"-Wl,-soname,{_NAME}", "-o", _NAME)
        done = run_command(Command(argv, folder))
        if done.returncode != 0:
            raise BuildError(f"{compiler} does not build a library of a few functions:\n{done.output.strip()}")

    return cache.get(digest(["few functions", compiler.identity, text]), build, "the small replacement of libstdc++")[0]


def link_flags(folder: Path) -> tuple[str, ...]:
    """Return the options that link the small library in ``folder``, and the C libraries that a kernel may need."""
    return ("-nodefaultlibs", f"-L{folder}", f"-l:{_NAME}", "-lm", "-lgcc_s", "-lc")
