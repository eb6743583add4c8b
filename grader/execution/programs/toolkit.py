"""Creates a folder laid out like the CUDA toolkit's, for makefiles: ``make CUDA_DIR="$(grader nvcc --toolkit)"``.

Such makefiles call ``$(CUDA_DIR)/bin/nvcc`` for the CUDA files and often the host's compiler for the rest and for
linking: ``gcc *.o -L$(CUDA_DIR)/lib64 -lcudart``. There, ``libcudart.so`` and ``libcudart_static.a`` are linker scripts
that add the simulator.
"""

from __future__ import annotations

import platform
import shlex
import shutil
import sys
from pathlib import Path

from grader.execution.jail.imports import exported
from grader.execution.programs.build import Options, execute, start_object
from grader.frontend.toolchain.cache import BuildCache, digest, open_cache
from grader.frontend.toolchain.compilers import find_cxx
from grader.frontend.toolchain.process import Command, run_command
from grader.simulator import hooks, library

_LIBRARIES = ("libcudart.so", "libcudart_static.a", "libcudadevrt.a", "libcuda.so")
_OBJECT, _LIBSIM = "linked.o", "libsim.so"


def folder(cache: BuildCache | None = None) -> Path:
    """Return the folder, with ``bin/nvcc``, ``include`` and ``lib64``. Create it if it is not in the cache."""
    cache = cache or open_cache()
    compiler = find_cxx()
    plan = library.plan_library(compiler)
    start = start_object(reporter=True, options=Options(), cache=cache)
    key = digest(["toolkit", Path(__file__).read_bytes(), plan.key, str(start), sys.executable])

    def build(place: Path) -> None:
        for name in ("bin", "lib64"):
            (place / name).mkdir()
        nvcc = place / "bin" / "nvcc"
        nvcc.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m grader nvcc "$@"\n', encoding="utf-8")
        nvcc.chmod(0o755)
        _link_headers(place / "include")
        (place / "lib").symlink_to("lib64")
        # The library has no soname. A program linked with it therefore records its full path, and needs no -rpath.
        objects = map(str, library.build_objects(plan, cache))
        argv = (*compiler.command, "-shared", "-o", f"lib64/{_LIBSIM}", *objects, "-pthread", "-ldl")
        execute(Command(argv, place), compiler)
        shutil.copy(start, place / "lib64" / "start.o")
        (place / "names.s").write_text(_names(place / "lib64" / _LIBSIM), encoding="utf-8")
        execute(Command((*compiler.command, "-c", "names.s", "-o", "lib64/names.o"), place), compiler)
        lib = cache.path(key) / "lib64"
        script = f'INPUT("{lib}/start.o" "{lib}/names.o" "{lib}/{_LIBSIM}" -lstdc++ -lpthread -ldl -lm)\n'
        for name in _LIBRARIES[:2]:
            (place / "lib64" / name).write_text(script, encoding="utf-8")
        for name in _LIBRARIES[2:]:
            (place / "lib64" / name).write_text("/* with libcudart */\n", encoding="utf-8")

    return cache.get(key, build, "CUDA's folder for makefiles")[0]


def _link_headers(include: Path) -> None:
    """Fill a folder with links to the simulator's headers.

    Each file gets its own link, because the folder ``sim/`` combines headers of two source folders.
    """
    for folder in library.INCLUDE_DIRS:
        for header in folder.rglob("*"):
            if header.is_file():
                link = include / header.relative_to(folder)
                link.parent.mkdir(parents=True, exist_ok=True)
                link.symlink_to(header)


def _names(libsim: Path) -> str:
    """Return assembly that defines CUDA's functions, such as cudaMalloc, as jumps to ``sim_cudaMalloc``.

    The simulator's headers rename them for C++. A C file that calls one without declaring it needs the original name.
    """
    jump = "b {}" if platform.machine() in ("aarch64", "arm64") else "jmp {}@PLT"
    lines = ['.section .note.GNU-stack,"",%progbits', ".text"]
    for symbol in sorted(name for name in exported(libsim) if name.startswith("sim_cuda")):
        name = symbol.removeprefix("sim_")
        lines += [f".weak {name}", f"{name}: {jump.format(symbol)}"]
    return "\n".join([*lines, ""])


def for_any_linker(built: Path) -> Path:
    """Return an object in which wrapped functions are renamed to the simulator's.

    The option ``--wrap`` has the same effect at link time, but a makefile's own link command does not have it.
    """
    objcopy = shutil.which("objcopy")
    if objcopy is None:
        return built
    key = digest(["linked", built.read_bytes()])

    def build(place: Path) -> None:
        names = "".join(f"{name} {hooks.wrapped(name)}\n" for name in hooks.WRAPPED)
        (place / "names").write_text(names, encoding="utf-8")
        done = run_command(Command((objcopy, "--redefine-syms=names", str(built), _OBJECT), place, (built.parent,)))
        if done.returncode != 0:
            shutil.copy(built, place / _OBJECT)

    return open_cache().get(key, build, built.name)[0] / _OBJECT
