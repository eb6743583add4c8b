"""Compilation of a program's files to an executable that runs on the simulated GPU.

Each file is preprocessed, translated and compiled separately, and the objects are linked with libsim, as with nvcc.
Other build tools can therefore link these objects and start the executables. The results are stored in the cache.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from grader.execution.build.build import cpu_flags
from grader.execution.build.precompiled import PRELUDE, headers_at_head, precompiled
from grader.execution.programs import messages
from grader.execution.programs.cuda_libraries import library_flags
from grader.execution.programs.files import CUDA, C, Unit, read_text
from grader.execution.programs.preprocess import Preprocessed, Refused, own_files, preprocess
from grader.frontend.headers import headers_for
from grader.frontend.rewrite import RewriteError, rewrite
from grader.frontend.toolchain.cache import BuildCache, digest, open_cache
from grader.frontend.toolchain.compilers import Compiler, cuda_home, find_cxx, find_nvcc
from grader.frontend.toolchain.process import Command, RunCommand, run_command
from grader.simulator import hooks, library

_START = Path(__file__).parent / "start.cpp"
OBJECT, PROGRAM = "unit.o", "program"


@dataclass(frozen=True)
class Options:
    """The build options of a program."""

    std: str = "c++17"
    checks: bool = True
    host_flags: tuple[str, ...] = ()
    """Options that nvcc passes to the C++ compiler, as given by ``-Xcompiler``."""
    relocatable: bool = False
    """True for ``-rdc=true``: device variables may be used by other files, which declare them as extern."""
    run: RunCommand = run_command


_EXTERN = re.compile(r"\bextern\b[^;{}()]*\b__(?:device|constant|managed)__\b|__(?:device|constant)__[ \t]+extern\b")
_OLD = {"c++03", "c++98", "c++11", "c++14", "c++0x", "c++1y"}


def flags_of(compiler: Compiler, options: Options) -> tuple[str, ...]:
    """Return the flags that compile a CUDA file; the simulator's headers need at least C++17."""
    std = "c++17" if options.std.replace("gnu", "c") in _OLD else options.std
    flags = [f"-std={std}" if flag.startswith("-std=") else flag for flag in cpu_flags(compiler, options.checks)]
    return (*flags, *options.host_flags)


def compile_unit(unit: Unit, options: Options, cache: BuildCache | None = None) -> Path:
    """Compile a file, and return the path of its object."""
    cache = cache or open_cache()
    compiler = find_cxx()
    flags = flags_of(compiler, options)
    if unit.language != CUDA:
        return _compile_host(unit, compiler, options, flags, cache)
    scratch = cache.path("preprocess").parent / "preprocess"
    scratch.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=scratch) as name:
        try:
            active = preprocess(unit, compiler, flags, Path(name), cache, options.run)
        except Refused as problem:
            raise messages.explain(problem.message, [unit.file], compiler) from None
    text = translated(active, internal=not options.relocatable and not _EXTERN.search(active.text))
    key = digest(["unit", text, *flags, compiler.identity, library.headers_digest()])

    def build(folder: Path) -> None:
        (folder / "unit.cpp").write_text(text, encoding="utf-8")
        argv = (*compiler.command, *flags, "-w", *library.include_flags(), "-c", "unit.cpp", "-o", OBJECT)
        ahead: tuple[Path, ...] = ()
        if compiler.family == "gcc":
            names = headers_at_head(text)
            ahead = (precompiled(compiler, flags, library.headers_digest(), names, cache),)
        argv += tuple(f"-include{path / PRELUDE}" for path in ahead)
        files = [unit.file, *map(Path, sorted(active.files))]
        execute(Command(argv, folder, (*library.INCLUDE_DIRS, *ahead)), compiler, files, options.run)

    return cache.get(key, build, unit.file.name)[0] / OBJECT


def execute(command: Command, compiler: Compiler, files: Sequence[Path] = (), run: RunCommand = run_command) -> None:
    """Run the compiler or the linker; raise its errors as a BuildError."""
    done = run(command)
    if done.returncode != 0:
        raise messages.explain(done.output, files, compiler)


def shares_variables(units: Sequence[Unit]) -> bool:
    """Return whether a file of a program uses a device variable of another one, which needs nvcc's -rdc=true."""
    return any(_EXTERN.search(read_text(file)) for unit in units if unit.language == CUDA for file in own_files(unit))


def translated(active: Preprocessed, internal: bool = False) -> str:
    """Translate the preprocessed text to C++. A RewriteError names the line of the program's own file."""
    try:
        rewritten = rewrite(active.text, library.INCLUDE_DIRS, alone=False, internal=internal)
    except RewriteError as problem:
        raise messages.placed(problem, active.places) from None
    head = '#include <cuda_runtime.h>\n#include "sim/before_cuda_13.h"\n'
    # Programs use these headers without including them, because nvcc's own headers include them.
    head += "#include <climits>\n" + ("#include <algorithm>\n" if "std::" in rewritten.text else "")
    return head + headers_for(rewritten.text) + rewritten.text


def _compile_host(unit: Unit, compiler: Compiler, options: Options, flags: tuple[str, ...], cache: BuildCache) -> Path:
    """Compile a C or C++ file with the host's compiler, as nvcc does."""
    language = "c" if unit.language == C else "c++"
    if unit.language == C:
        flags = ("-gdwarf-4", "-g1", "-O1", "-fPIC", *options.host_flags)
    includes = [f"-I{path}" for path in (*unit.include_dirs, *library.INCLUDE_DIRS)]
    base = (*compiler.command, "-x", language, *flags, "-w", "-DSIM_HOST_FILE", *unit.defines, *includes)
    reads = (*unit.include_dirs, unit.file.parent, *library.INCLUDE_DIRS)
    key = digest(["host", *base, compiler.identity, library.headers_digest(), *_contents(unit)])

    argv = (*base, "-c", str(unit.file), "-o", OBJECT)
    entry, _ = cache.get(
        key, lambda folder: execute(Command(argv, folder, reads), compiler, [unit.file], options.run), unit.file.name
    )
    return entry / OBJECT


def _contents(unit: Unit) -> list[str | bytes]:
    """Return the paths and contents of the file and of all headers that may be included."""
    folders = {unit.file.parent, *unit.include_dirs}
    headers = sorted(p for folder in folders for p in folder.glob("*") if p.suffix in (".h", ".hpp", ".cuh", ".inl"))
    return [str(unit.file), unit.file.read_bytes(), *(part for p in headers for part in (str(p), p.read_bytes()))]


def link(
    objects: Sequence[Path | str],
    options: Options,
    flags: Sequence[str] = (),
    reporter: bool = False,
    cache: BuildCache | None = None,
) -> Path:
    """Link objects to an executable. With ``reporter`` the executable shows its findings when it ends."""
    cache = cache or open_cache()
    compiler = find_cxx()
    libsim = library.ensure_library(compiler, cache)
    start = start_object(reporter, options, cache)
    argv = [*compiler.command, *options.host_flags, *map(str, objects), str(start), "-pie", *flags, "-o", PROGRAM]
    argv += hooks.link_flags(options.checks)
    argv += ["-Wl,--no-as-needed", str(libsim), f"-Wl,-rpath,{libsim.parent}", "-Wl,--as-needed"]
    argv += ["-pthread", "-ldl", "-lm"]
    contents = [Path(path).read_bytes() for path in objects if Path(path).is_file()]
    key = digest(["program", compiler.identity, *argv, *contents])
    reads = (libsim.parent, start.parent, *(Path(path).parent for path in objects if Path(path).is_absolute()))
    entry, _ = cache.get(
        key, lambda folder: execute(Command(tuple(argv), folder, reads), compiler, run=options.run), "the program"
    )
    return entry / PROGRAM


def start_object(reporter: bool, options: Options, cache: BuildCache) -> Path:
    """Return the object that registers a program with libsim before the program's first line runs."""
    compiler = find_cxx()
    command = [sys.executable, "-m", "grader.cli.reporter"] if reporter else []
    start = f"#define REPORTER {', '.join(map(json.dumps, command)) or 'nullptr'}\n" + _START.read_text(
        encoding="utf-8"
    )

    def build(folder: Path) -> None:
        (folder / "start.cpp").write_text(start, encoding="utf-8")
        argv = (*compiler.command, "-fPIC", "-c", "start.cpp", "-o", "start.o")
        execute(Command(argv, folder), compiler, run=options.run)

    return cache.get(digest(["start", start, compiler.identity]), build, "the program's start")[0] / "start.o"


def build_program(units: Sequence[Unit], options: Options, cache: BuildCache | None = None) -> Path:
    """Build a program for the simulated GPU; return the path of its executable."""
    cache = cache or open_cache()
    options = replace(options, relocatable=options.relocatable or shares_variables(units))
    libsim = library.plan_library(find_cxx())
    with ThreadPoolExecutor(max_workers=2) as pool:
        ready = pool.submit(library.build_library, libsim, cache)
        objects = list(pool.map(lambda unit: compile_unit(unit, options, cache), units))
        ready.result()
    return link(objects, options, cache=cache)


def flags_of_defines(defines: Sequence[str]) -> tuple[str, ...]:
    """Return the compiler's option ``-D`` for each definition, which has the form ``X`` or ``X=Y``."""
    return tuple(f"-D{define}" for define in defines)


def build_cuda(units: Sequence[Unit], options: Options) -> Path:
    """Build a program for this machine's GPU with nvcc; return the path of its executable."""
    nvcc = find_nvcc()
    assert nvcc is not None
    include = [f"-I{folder}" for folder in dict.fromkeys(folder for unit in units for folder in unit.include_dirs)]
    defines = list(dict.fromkeys(define for unit in units for define in unit.defines))
    argv = [*nvcc.command, f"-std={options.std}", "-O3", "-lineinfo", "-arch=native", "--expt-relaxed-constexpr"]
    argv += ["--extended-lambda", *defines, *include, *(str(unit.file) for unit in units), "-o", PROGRAM]
    argv += library_flags(units, cuda_home(nvcc))
    key = digest(["cuda program", nvcc.identity, *argv, *(part for unit in units for part in _contents(unit))])
    files = [unit.file for unit in units]
    entry, _ = open_cache().get(
        key, lambda folder: execute(Command(tuple(argv), folder), nvcc, files), "the program compiled by nvcc"
    )
    return entry / PROGRAM
