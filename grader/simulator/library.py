"""Build libsim, the simulator's runtime and checks, once for each compiler. Source files are compiled in parallel."""

from __future__ import annotations

import functools
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from grader.frontend.toolchain.cache import BuildCache, digest, open_cache
from grader.frontend.toolchain.compilers import Compiler, find_cxx
from grader.frontend.toolchain.process import Command, run_command
from grader.setup.errors import BuildError

_HERE = Path(__file__).parent
INCLUDE_DIR = _HERE / "include"
"""The simulator's versions of CUDA's own headers."""

INCLUDE_DIRS: tuple[Path, ...] = (INCLUDE_DIR, _HERE / "libraries" / "include")
"""The folders of headers in the order of the include path; the second has Thrust, CUB, cuBLAS, cuRAND, textures."""

_SOURCE_DIRS = (_HERE / "runtime", _HERE / "submission_sandbox", _HERE / "checks", _HERE / "libraries" / "runtime")
_SOURCES = (".cpp", ".S")

_FLAGS = (
    "-std=c++17",
    "-O2",
    "-g1",
    "-fPIC",
    "-fvisibility=hidden",
    "-fno-semantic-interposition",
    "-fno-strict-aliasing",
    "-fno-stack-protector",
    "-fno-omit-frame-pointer",  # submission_sandbox/sandbox.cpp walks the runtime's own frames, too
    "-mno-omit-leaf-frame-pointer",
    "-ftls-model=initial-exec",
)


@dataclass(frozen=True)
class LibraryPlan:
    """The inputs of a libsim build. Their hash ``key`` names the entry in the cache, before libsim is built."""

    compiler: Compiler
    sources: tuple[Path, ...]
    flags: tuple[str, ...]
    headers: str  # a hash of all headers
    key: str

    @property
    def file_name(self) -> str:
        """A unique file name, because the loader treats two libraries of one name in a process as the same."""
        return f"libsim-{self.key[:12]}.so"

    def folder(self, cache: BuildCache) -> Path:
        """Return the library's folder, before or after it is built."""
        return cache.path(self.key)


def include_flags() -> tuple[str, ...]:
    """Return the compiler's options for the simulator's headers."""
    return tuple(f"-I{folder}" for folder in INCLUDE_DIRS)


def header_path(name: str) -> Path | None:
    """Return the simulator's file for a header such as ``thrust/sort.h``, or None if it has none."""
    return next((path for folder in INCLUDE_DIRS if (path := folder / name).is_file()), None)


def holds_own_headers(folder: Path) -> bool:
    """Return whether a folder is one of the simulator's, or the merged ``include`` of ``grader nvcc --toolkit``."""
    return folder in INCLUDE_DIRS or (folder / "cuda_runtime.h").resolve() == INCLUDE_DIR / "cuda_runtime.h"


def plan_library(compiler: Compiler | None = None) -> LibraryPlan:
    """Return the plan of the library for a compiler. Hash the sources, without building them."""
    return _plan(compiler or find_cxx(), _files())


def headers_digest() -> str:
    """Return a hash of the simulator's headers, computed again only if a file of the simulator changed."""
    return _headers_digest(_files())


_Files = tuple[tuple[str, int, int], ...]
"""The paths of the simulator's files, each with its size and modification time. Paths as text are hashed faster."""


def _files() -> _Files:
    walks = (walk for top in (*INCLUDE_DIRS, *_SOURCE_DIRS) for walk in os.walk(top))
    # Leave out the documentation. It is not part of a wheel, so the digest must not depend on it.
    paths = sorted(
        os.path.join(folder, name) for folder, _, names in walks for name in names if not name.endswith(".md")
    )
    return tuple((path, (status := os.stat(path)).st_size, status.st_mtime_ns) for path in paths)


@functools.lru_cache(maxsize=8)
def _plan(compiler: Compiler, files: _Files) -> LibraryPlan:
    sources = tuple(Path(path) for path, _, _ in files if path.endswith(_SOURCES))
    headers = _headers_digest(files)
    contents = [part for path in sources for part in (path.name, path.read_bytes())]
    key = digest(["libsim 2", compiler.identity, *_FLAGS, headers, *contents])
    return LibraryPlan(compiler, sources, (*_FLAGS, *include_flags(), f"-I{_HERE}"), headers, key)


@functools.lru_cache(maxsize=8)
def _headers_digest(files: _Files) -> str:
    headers = [Path(path) for path, _, _ in files if not path.endswith(_SOURCES)]
    return digest(part for path in headers for part in (path.relative_to(_HERE).as_posix(), path.read_bytes()))


def ensure_library(compiler: Compiler | None = None, cache: BuildCache | None = None) -> Path:
    """Return the path of libsim, built if it is not in the cache."""
    return build_library(plan_library(compiler), cache or open_cache())


def build_library(plan: LibraryPlan, cache: BuildCache) -> Path:
    """Return the path of a plan's libsim, built if it is not in the cache."""
    entry, _ = cache.get(plan.key, functools.partial(_build, plan, cache), "the simulator")
    return entry / plan.file_name


def _build(plan: LibraryPlan, cache: BuildCache, folder: Path) -> None:
    objects = map(str, build_objects(plan, cache))
    link = [*plan.compiler.command, "-shared", "-o", plan.file_name, *objects]
    link += [f"-Wl,-soname,{plan.file_name}", "-pthread", "-ldl"]
    _run(plan, tuple(link), folder)


def build_objects(plan: LibraryPlan, cache: BuildCache) -> list[Path]:
    """Return the object files of a plan's libsim, built if they are not in the cache."""
    with ThreadPoolExecutor(max_workers=max(2, os.cpu_count() or 2)) as pool:
        return sorted(pool.map(functools.partial(_object, plan, cache), _largest_first(plan.sources)))


def _largest_first(sources: tuple[Path, ...]) -> list[Path]:
    return sorted(sources, key=lambda path: -path.stat().st_size)


def _object(plan: LibraryPlan, cache: BuildCache, source: Path) -> Path:
    key = digest(["object", plan.compiler.identity, *_FLAGS, plan.headers, source.name, source.read_bytes()])
    name = "_".join(source.relative_to(_HERE).with_suffix(".o").parts)

    def compile_one(folder: Path) -> None:
        _run(plan, (*plan.compiler.command, *plan.flags, "-c", str(source), "-o", name), folder)

    entry, _ = cache.get(key, compile_one, f"the simulator ({source.name})")
    return entry / name


def _run(plan: LibraryPlan, argv: tuple[str, ...], folder: Path) -> None:
    done = run_command(Command(argv, folder))
    if done.returncode != 0:
        raise BuildError(
            f"the simulator does not compile with {plan.compiler}:\n{done.output.strip()}",
            "A C++17 compiler is needed: g++ 10 or clang++ 12, or newer.",
        )
