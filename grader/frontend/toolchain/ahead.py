"""Starts slow work before the command line is parsed, because every check needs its result.

The work is the import of modules in the process that builds kernels (``grader/judge/build_process.py``), and the
loading of torch's largest library.
"""

from __future__ import annotations

import subprocess
import sys
from contextlib import suppress
from pathlib import Path

_waiting: list[subprocess.Popen[bytes]] = []


def start() -> None:
    """Start the build process. It imports its modules and waits for a job. It ends when this process ends."""
    program = f"import sys; sys.path[:] = {sys.path!r}; from grader.judge.build_process import main; main()"
    _waiting.append(
        subprocess.Popen(
            [sys.executable, "-c", program],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,  # this process handles Ctrl-C and then stops the build process
        )
    )


def load_torch() -> None:
    """Load torch's largest library in a thread.

    This takes a sixth of the time of torch's import, and does not need the GIL. The dynamic loader loads one library at
    a time, so the libraries of NumPy and msgspec, which the command line needs, are loaded first.
    """
    import ctypes
    import threading
    from importlib.machinery import PathFinder

    import msgspec  # noqa: F401
    import numpy  # noqa: F401

    def load() -> None:
        spec = PathFinder.find_spec("torch")
        if spec is not None and spec.origin:
            with suppress(OSError):  # if the library is elsewhere, only the import of torch loads it
                ctypes.CDLL(str(Path(spec.origin).parent / "lib" / "libtorch_cpu.so"))

    threading.Thread(target=load, daemon=True).start()


def take() -> subprocess.Popen[bytes]:
    """Return the build process that ``start`` started; start one if there is none."""
    if not _waiting:
        start()
    return _waiting.pop()
