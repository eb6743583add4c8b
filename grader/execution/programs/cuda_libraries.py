"""nvcc's options for the libraries that a program uses: cuBLAS, cuBLASLt and cuRAND."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from grader.execution.programs.files import Unit, read_text
from grader.execution.programs.preprocess import own_files
from grader.setup.errors import GraderError

_LIBRARIES = {
    "cublas.h": "cublas",
    "cublas_v2.h": "cublas",
    "cublas_api.h": "cublas",
    "cublasLt.h": "cublasLt",
    "curand.h": "curand",
}
"""The library that each header needs."""
_INCLUDE = re.compile(r"^[ \t]*#[ \t]*include[ \t]*[<\"]([\w./]+)[>\"]", re.MULTILINE)


def library_flags(units: Sequence[Unit], toolkit: Path, packages: Iterable[Path] | None = None) -> list[str]:
    """Return nvcc's options that link the libraries whose headers a program includes.

    ``toolkit`` is the folder of nvcc's toolkit. If it lacks a library, one of NVIDIA's pip packages, which PyTorch
    installs, provides it. ``packages`` are their folders, by default those of this Python.
    """
    names = {name for unit in units for file in own_files(unit) for name in _INCLUDE.findall(read_text(file))}
    flags: list[str] = []
    for header, library in _LIBRARIES.items():
        if header not in names:
            continue
        if (toolkit / "include" / header).is_file():
            found = [f"-l{library}"]
        else:
            found = _from_packages(header, library, list(_packages() if packages is None else packages))
        flags += [flag for flag in found if flag not in flags]
    return flags


def _from_packages(header: str, library: str, packages: Sequence[Path]) -> list[str]:
    for folder in packages:
        files = sorted((folder / "lib").glob(f"lib{library}.so*"))
        if files and (folder / "include" / header).is_file():
            lib = folder / "lib"  # nvcc knows no file name such as libcublas.so.13, so let the linker look for it
            return [f"-I{folder / 'include'}", f"-L{lib}", f"-Xlinker=-rpath={lib}", f"-l:{files[-1].name}"]
    raise GraderError(
        f"the CUDA toolkit of this nvcc has no {header}",
        f"Install the library {library} of the CUDA toolkit, or run the program on the simulated GPU (--device cpu).",
    )


def _packages() -> list[Path]:
    """Return the folders of NVIDIA's pip packages, such as ``nvidia/cu13``."""
    spec = importlib.util.find_spec("nvidia")
    folders = spec.submodule_search_locations or [] if spec else []
    return [path for folder in folders for path in sorted(Path(folder).iterdir(), reverse=True) if path.is_dir()]
