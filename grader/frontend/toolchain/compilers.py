"""Finds the compilers of this machine: a C++ compiler for the simulator, nvcc for a real GPU.

``GRADER_CXX`` and ``GRADER_NVCC`` override the search. The pip packages of the ``nvcc`` extra also provide nvcc.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import itertools
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from grader.setup import shipped
from grader.setup.errors import GraderError

_CXX_NAMES = ("g++", "c++", "clang++")
_CXX_HINT = (
    "Install a C++ compiler (Debian, Ubuntu: 'apt install g++'; macOS: 'xcode-select --install') or set GRADER_CXX."
)


class NoCompiler(GraderError):
    """The error for a machine that does not have the required compiler."""


@dataclass(frozen=True)
class Compiler:
    """A compiler of this machine.

    ``family`` is gcc, clang or nvcc. ``identity`` is its version text and file size, which change with an update.
    """

    command: tuple[str, ...]
    family: str
    version: str
    identity: str

    @property
    def path(self) -> str:
        return self.command[-1]

    @property
    def name(self) -> str:
        return {"gcc": "g++", "clang": "clang++"}.get(self.family, self.family)

    def __str__(self) -> str:
        return f"{self.name} {self.version}"


def find_cxx(preferred: str | None = None) -> Compiler:
    """Return the C++ compiler.

    The order is: ``preferred``, ``$GRADER_CXX``, ``$CXX``, g++, c++, clang++, and then the newest versioned name of g++
    (such as g++-14) or of clang++.
    """
    for variable, value in (
        ("", preferred),
        ("GRADER_CXX", os.environ.get("GRADER_CXX")),
        ("CXX", os.environ.get("CXX")),
    ):
        if not value:
            continue
        found = _cxx(value, os.environ.get("PATH", ""))
        if found:
            return found
        if variable == "CXX":
            continue  # $CXX is meant for other tools, so an unusable value is ignored
        where = f"{variable}={value}" if variable else f"the compiler {value}"
        raise NoCompiler(f"{where} is not a C++ compiler that runs here", _CXX_HINT)
    path = os.environ.get("PATH", "")
    for name in itertools.chain(_CXX_NAMES, _with_versions(path)):
        found = _cxx(name, path)
        if found:
            return found
    raise NoCompiler(f"there is no C++ compiler on this machine (looked for {', '.join(_CXX_NAMES)})", _CXX_HINT)


def _with_versions(path: str) -> Iterator[str]:
    """Yield compilers with a version in their name, such as g++-14, newest first.

    This is a generator because listing the folders on the PATH is slow. The caller needs it only if no compiler has a
    plain name, as after `apt install g++-14`.
    """
    found: set[tuple[bool, int, str]] = set()
    for folder in filter(None, path.split(os.pathsep)):
        with contextlib.suppress(OSError):
            matches = (re.fullmatch(r"(g|clang)\+\+-(\d+)", name) for name in os.listdir(folder))
            found |= {(match[1] == "g", int(match[2]), match[0]) for match in matches if match}
    yield from (name for _, _, name in sorted(found, reverse=True))


def available_cxx() -> list[Compiler]:
    """Return every C++ compiler that is found, g++ first."""
    found = [_cxx(name, os.environ.get("PATH", "")) for name in ("g++", "clang++")]
    return [c for c in found if c]


@functools.lru_cache(maxsize=32)
def _cxx(command: str, path: str) -> Compiler | None:
    try:
        words = shlex.split(command)
    except ValueError:  # a quotation mark without its pair
        return None
    program = shutil.which(words[-1], path=path) if words else None
    if program is None:
        return None
    full = (*words[:-1], program)
    text = _output([*full, "--version"])
    if text is None or "nvcc" in text.lower():  # nvcc does not know the flags of a C++ compiler
        return None
    family = "clang" if "clang" in text.lower() else "gcc"
    first = text.splitlines()[0] if text else ""
    version = re.search(r"\d+\.\d+(\.\d+)?", first.split(")")[-1] if family == "gcc" else first)
    # g++ begins its text with the name by which it is called. Under the name c++, it is the same compiler.
    named = text.partition(" ")[2] if family == "gcc" else text
    return Compiler(full, family, version.group() if version else "unknown", _identity(program, named))


def find_nvcc(required: bool = True) -> Compiler | None:
    """Return nvcc.

    The order is: ``$GRADER_NVCC``, the PATH, ``$CUDA_HOME``, ``$CUDA_PATH``, /usr/local/cuda, and then the pip
    packages.
    """
    override = os.environ.get("GRADER_NVCC")
    if override:
        found = _nvcc(override, os.environ.get("PATH", ""))
        if found is None:
            raise NoCompiler(
                f"GRADER_NVCC={override} is not an nvcc that runs here",
                "Unset GRADER_NVCC, or set it to the path of nvcc.",
            )
        return found
    for candidate in _nvcc_candidates():
        found = _nvcc(candidate, os.environ.get("PATH", ""))
        if found:
            return found
    if required:
        raise NoCompiler(
            "there is no nvcc on this machine",
            "Without nvcc, kernels run on the simulated GPU (device='cpu'). "
            f"Install the CUDA toolkit, or: {shipped.install_extra('nvcc')}",
        )
    return None


def _nvcc_candidates() -> list[str]:
    homes = [os.environ.get("CUDA_HOME", ""), os.environ.get("CUDA_PATH", ""), "/usr/local/cuda"]
    candidates = ["nvcc", *(str(Path(home, "bin", "nvcc")) for home in homes if home)]
    # The pip packages nvidia-cuda-nvcc and friends unpack a toolkit below site-packages/nvidia/cuNN (or cuda_nvcc).
    spec = importlib.util.find_spec("nvidia") if "nvidia" not in sys.modules else sys.modules["nvidia"].__spec__
    for folder in spec.submodule_search_locations or [] if spec else []:
        candidates += [str(p) for p in sorted(Path(folder).glob("*/bin/nvcc"), reverse=True)]
    return candidates


@functools.lru_cache(maxsize=32)
def _nvcc(command: str, path: str) -> Compiler | None:
    program = shutil.which(command, path=path)
    if program is None:
        return None
    text = _output([program, "--version"])
    version = re.search(r"release (\d+\.\d+)", text or "")
    if text is None or version is None:
        return None
    return Compiler((program,), "nvcc", version.group(1), _identity(program, text))


@functools.lru_cache(maxsize=32)
def cuda_home(nvcc: Compiler) -> Path:
    """Return the folder of the toolkit that an nvcc belongs to, even if nvcc is a wrapper script elsewhere."""
    text = _output([*nvcc.command, "--dryrun", "-x", "cu", "-E", os.devnull], both=True) or ""
    top = re.search(r"^#\$ TOP=(\S+)", text, re.MULTILINE)
    home = Path(top.group(1)) if top else Path(os.path.realpath(nvcc.path)).parent.parent
    return Path(os.path.normpath(home))


def _identity(program: str, version_text: str) -> str:
    status = os.stat(program)
    return f"{version_text.strip()} size={status.st_size}"


def _output(command: list[str], both: bool = False) -> str | None:
    """Return the output of a command, or None if it cannot be started, fails or takes too long."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, errors="replace")
    except (OSError, subprocess.TimeoutExpired):
        return None
    if done.returncode != 0:
        return None
    return done.stdout + done.stderr if both else done.stdout
