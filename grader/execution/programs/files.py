"""The source files of a program, each with its include folders and definitions from the command line."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from grader.setup.errors import GraderError
from grader.simulator import library

CUDA, CPP, C = "cuda", "c++", "c"
_LANGUAGES = {".cu": CUDA, ".cuh": CUDA, ".c": C, ".cpp": CPP, ".cc": CPP, ".cxx": CPP, ".C": CPP, ".c++": CPP}
LARGEST = 16 << 20
"""The maximum size of a file in bytes."""


@dataclass(frozen=True)
class Unit:
    """A file to compile, with its include folders (all paths are absolute) and its ``-D`` and ``-U`` options."""

    file: Path
    include_dirs: tuple[Path, ...] = ()
    defines: tuple[str, ...] = ()
    language: str = CUDA


def language_of(path: Path) -> str | None:
    """Return the language of a file, by its suffix; None if it is not a source file."""
    return _LANGUAGES.get(path.suffix)


def unit(
    path: Path, include_dirs: tuple[Path, ...] = (), defines: tuple[str, ...] = (), language: str | None = None
) -> Unit:
    """Return a file with its settings; raise GraderError if it cannot be used."""
    if path.is_dir():
        raise GraderError(f"{path} is a folder", "Name the .cu files of the program.")
    if not path.exists():
        raise GraderError(f"there is no file {path}")
    kind = language or language_of(path)
    if kind is None:
        raise GraderError(f"{path} is not a source file", f"The files of a program end in {', '.join(_LANGUAGES)}.")
    # A folder with CUDA's own headers is ignored, because the simulator provides these headers.
    folders = tuple(
        folder for folder in (given.resolve() for given in include_dirs) if not library.holds_own_headers(folder)
    )
    return Unit(path.resolve(), folders, defines, kind)


def read_text(path: Path) -> str:
    """Return the text of a file of a program, in any encoding."""
    try:
        if path.stat().st_size > LARGEST:
            raise GraderError(f"{path} is larger than {LARGEST >> 20} MB")
        return path.read_text(encoding="utf-8-sig", errors="replace")  # Windows writes a byte order mark
    except OSError as problem:
        raise GraderError(f"{path} cannot be read: {problem.strerror}") from None
