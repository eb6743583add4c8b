"""Compilation of a build plan by ``torch.utils.cpp_extension.load_inline``, the function that PyTorch users know.

``functions=None`` and ``no_implicit_headers=True`` omit PyTorch's headers, which would take half a minute to compile;
the result is a plain shared library. ``load_inline`` gets a fresh folder, so a lock left by a killed process cannot
block it, and the result moves into the build cache.
"""

from __future__ import annotations

import contextlib
import importlib.util
import logging
import os
import shlex
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from grader.execution.build.build import KERNEL_LIBRARY, BuildPlan, compile_directly, compile_error, link_flags
from grader.frontend.toolchain.cache import BuildCache
from grader.frontend.toolchain.compilers import cuda_home
from grader.frontend.toolchain.process import ENGLISH
from grader.setup.errors import GraderError
from grader.simulator import library

# load_inline reads environment variables that a build sets, so only one build runs at a time.
_turn = threading.Lock()

# PyTorch defines these macros, which disable CUDA's operators for half types. The build undefines them with -U.
_UNDO = (
    "__CUDA_NO_HALF_OPERATORS__",
    "__CUDA_NO_HALF_CONVERSIONS__",
    "__CUDA_NO_BFLOAT16_CONVERSIONS__",
    "__CUDA_NO_HALF2_OPERATORS__",
)


def compile_inline(plan: BuildPlan, cache: BuildCache, folder: Path) -> None:
    """Build ``folder/kernel.so`` from a plan with ``load_inline``."""
    with ThreadPoolExecutor(max_workers=1) as pool:
        libsim = pool.submit(library.build_library, plan.libsim, cache) if plan.libsim else None
        with _without_warnings():
            from torch.utils import cpp_extension  # slow to import, and needed only for a build

        if libsim:
            libsim.result()
    if not _needs_no_quotes(cpp_extension.TORCH_LIB_PATH):
        compile_directly(plan, cache, folder)  # builds the same library without load_inline
        return
    name = f"{plan.name}_{plan.key[:8]}"
    with _turn, _environment(plan):
        if plan.device == "cuda" and not cpp_extension.CUDA_HOME:
            cpp_extension.CUDA_HOME = str(cuda_home(plan.compiler))
        try:
            cpp_extension.load_inline(
                name=name,
                cpp_sources=[plan.text] if plan.device == "cpu" else [],
                cuda_sources=[plan.text] if plan.device == "cuda" else None,
                functions=None,
                extra_cflags=_quoted(plan.flags) if plan.device == "cpu" else [],
                extra_cuda_cflags=_quoted((*plan.flags, *(f"-U{name}" for name in _UNDO))),
                extra_ldflags=_quoted(link_flags(plan, cache)),
                extra_include_paths=[str(path) for path in plan.include_dirs],
                build_directory=str(folder),
                with_cuda=plan.device == "cuda",
                is_python_module=False,
                no_implicit_headers=True,
            )
        except RuntimeError as problem:
            if "Ninja is required" in str(problem):
                raise GraderError("ninja is not installed", "Install ninja: pip install ninja") from None
            raise compile_error(plan, str(problem)) from None
    # load_inline has already loaded the library. Renaming keeps the inode, so the loaded file remains the same.
    built = sorted(folder.glob("*.so"))
    built[0].rename(folder / KERNEL_LIBRARY)
    for leftover in folder.iterdir():
        if leftover.suffix in (".o", ".d") or leftover.name.startswith((".ninja", "build.ninja", "lock")):
            leftover.unlink()


@contextlib.contextmanager
def _without_warnings() -> Iterator[None]:
    """Suppress PyTorch's warnings about a CUDA toolkit without a GPU: a kernel for the simulator needs neither."""
    logger = logging.getLogger("torch.utils.cpp_extension")
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(before)


def _needs_no_quotes(path: str) -> bool:
    """Return whether a path can be used in a shell command without quotes.

    PyTorch's own folder must be such a path, because load_inline does not quote it.
    """
    return shlex.quote(path) == path


def _quoted(flags: tuple[str, ...]) -> list[str]:
    """Return flags quoted for a shell command in a ninja file."""
    return [shlex.quote(flag).replace("$", "$$") for flag in flags]


@contextlib.contextmanager
def _environment(plan: BuildPlan) -> Iterator[None]:
    """Set the environment variables by which load_inline finds its tools, and restore them afterwards."""
    wanted = dict(ENGLISH)
    wanted["PYTORCH_NVCC" if plan.device == "cuda" else "CXX"] = shlex.join(plan.compiler.command)
    wanted["PATH"] = os.pathsep.join([*_ninja_folders(), os.environ.get("PATH", "")])
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _ninja_folders() -> list[str]:
    """Return the folders in which pip may have installed ninja.

    They are not on the PATH if Python was started by its full path, without activating its environment.
    """
    folders = [str(Path(sys.executable).parent)]
    spec = importlib.util.find_spec("ninja")
    if spec and spec.origin:
        folders.append(str(Path(spec.origin).parent / "data" / "bin"))
    return folders
