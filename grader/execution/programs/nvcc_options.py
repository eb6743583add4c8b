"""nvcc's command line, as used by makefiles: the inputs, the output, and the options of the C++ compiler."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from grader.execution.programs.files import CPP, CUDA, C
from grader.setup.errors import GraderError

_WITH_VALUE = {
    "-o": "output", "--output-file": "output", "-I": "include", "--include-path": "include", "-isystem": "include",
    "-D": "define", "--define-macro": "define", "-U": "undefine", "--undefine-macro": "undefine", "-std": "std",
    "--std": "std", "-x": "language", "--x": "language", "-Xcompiler": "host", "--compiler-options": "host",
    "-Xlinker": "linker", "--linker-options": "linker", "-L": "library_path", "--library-path": "library_path",
    "-l": "library", "--library": "library", "-include": "preinclude", "--pre-include": "preinclude",
    "-MF": "dependency_file", "--dependency-output": "dependency_file",
    "-MT": "dependency_target", "--dependency-target-name": "dependency_target",
}  # fmt: skip
_IGNORED_WITH_VALUE = {
    "-arch", "--gpu-architecture", "-code", "--gpu-code", "-gencode", "--generate-code", "-ccbin", "--compiler-bindir",
    "-Xptxas", "--ptxas-options", "-Xnvlink", "-maxrregcount", "--maxrregcount", "-t", "--threads",
    "-cudart", "--cudart",
    "-diag-suppress", "--diag-suppress", "-Werror",
}  # fmt: skip
_JOINED = ("-I", "-D", "-U", "-L", "-l", "-o")
_STAGES = {"-c": "compile", "--compile": "compile", "-dc": "compile", "--device-c": "compile", "-link": "link"}
_NOT_HERE = {"-ptx": "PTX", "--ptx": "PTX", "-cubin": "a cubin", "--cubin": "a cubin", "-fatbin": "a fatbin"}
_NOT_HERE |= {
    "-shared": "a shared library",
    "--shared": "a shared library",
    "-lib": "a library",
    "-E": "preprocessed text",
}
_HOST_FLAGS = ("-f", "-m", "-W", "-pthread", "-w")
_CUDA_LIBRARIES = {"cudart", "cudart_static", "cudadevrt", "cuda", "cublas", "cublas_static", "cublasLt"}
_CUDA_LIBRARIES |= {"cublasLt_static", "curand", "curand_static"}


@dataclass
class NvccCall:
    """The parsed command line of a call of nvcc."""

    inputs: list[Path] = field(default_factory=list)
    """The paths of sources, objects and libraries, in the order of the command line."""
    output: Path | None = None
    compile_only: bool = False
    include_dirs: list[Path] = field(default_factory=list)
    defines: list[str] = field(default_factory=list)
    std: str = "c++17"
    language: str | None = None
    host_flags: list[str] = field(default_factory=list)
    link_flags: list[str] = field(default_factory=list)
    relocatable: bool = False
    """True to let other files use device variables: ``-rdc=true`` or ``-dc``."""
    ignored: list[str] = field(default_factory=list)
    """Options that have no effect on the simulator, as they were written."""
    version: bool = False
    verbose: bool = False
    dependencies: bool = False
    """True to write a makefile rule next to the object (-MD): the files on which the object depends."""
    dependency_file: Path | None = None
    dependency_target: str | None = None


def read_command_line(arguments: Sequence[str]) -> NvccCall:
    """Parse nvcc's arguments."""
    call = NvccCall()
    words = iter(_with_files(arguments))
    for word in words:
        name, equals, value = word.partition("=")
        if word in ("-v", "--verbose"):
            call.verbose = True
        elif word in ("-MD", "-MMD", "--generate-dependencies-with-compile"):
            call.dependencies = True
        elif word in ("--version", "-V"):
            call.version = True
        elif word in _STAGES:
            call.compile_only = _STAGES[word] == "compile"
            call.relocatable |= word in ("-dc", "--device-c")
        elif word in _NOT_HERE:
            raise GraderError(
                f"nvcc {word}: the simulator cannot create {_NOT_HERE[word]}", "Build objects or programs."
            )
        elif name in _WITH_VALUE:
            _set(call, _WITH_VALUE[name], value if equals and not word.startswith("-D") else _next(words, word))
        elif name in ("-rdc", "--relocatable-device-code"):
            call.relocatable = (value if equals else _next(words, word)) == "true"
        elif name in _IGNORED_WITH_VALUE:
            call.ignored.append(word if equals else f"{word} {_next(words, word)}")
        elif word[:2] in _JOINED and len(word) > 2 and word != "-lineinfo":
            _set(call, _WITH_VALUE[word[:2]], word[2:])
        elif not word.startswith("-"):
            call.inputs.append(Path(word))
        elif word.startswith(_HOST_FLAGS) and not word.startswith("-forward-unknown"):
            call.host_flags.append(word)
        else:  # -O3, -g, -G, -lineinfo, --use_fast_math, --expt-relaxed-constexpr ...
            call.ignored.append(word)
    return call


def _with_files(arguments: Sequence[str]) -> Iterator[str]:
    """Yield the arguments. Replace ``--options-file FILE`` by the arguments in that file."""
    words = iter(arguments)
    for word in words:
        if word not in ("--options-file", "-optf"):
            yield word
            continue
        file = _next(words, word)
        try:
            text = Path(file).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as problem:
            raise GraderError(f"nvcc {word}: {file} cannot be read: {getattr(problem, 'strerror', problem)}") from None
        yield from shlex.split(text)


def _next(words: Iterator[str], option: str) -> str:
    value = next(words, None)
    if value is None:
        raise GraderError(f"nvcc {option}: its value is missing")
    return value


def _set(call: NvccCall, what: str, value: str) -> None:
    if what == "output":
        call.output = Path(value)
    elif what == "include":
        call.include_dirs.append(Path(value))
    elif what == "dependency_file":
        call.dependency_file = Path(value)
    elif what == "dependency_target":
        call.dependency_target = value
    elif what == "define":
        call.defines.append(f"-D{value}")
    elif what == "undefine":
        call.defines.append(f"-U{value}")
    elif what == "preinclude":
        call.defines += ["-include", str(Path(value).resolve()) if Path(value).exists() else value]
    elif what == "std":
        call.std = value
    elif what == "language":
        call.language = {"cu": CUDA, "c++": CPP, "c": C}.get(value)
    elif what == "host":
        call.host_flags += _without_optimization(value.split(","))
    elif what == "linker":
        call.link_flags.append(f"-Wl,{value}")
    elif what == "library_path":
        call.link_flags.append(f"-L{Path(value).resolve()}")
    elif value not in _CUDA_LIBRARIES:
        call.link_flags.append(f"-l{value}")


def _without_optimization(flags: Sequence[str]) -> list[str]:
    """Return the flags except those for optimization and debugging, which the simulator sets itself.

    Optimizations would remove memory accesses, so that the checks could not see them.
    """
    return [flag for part in flags for flag in part.split() if not flag.startswith(("-O", "-g", "-march", "-std"))]
