"""Work that every check needs, started before the command line is parsed.

The process that builds kernels spends most of its start on imports; see ``grader/judge/build_process.py``.
"""

from __future__ import annotations

import subprocess
import sys
from contextlib import suppress
from pathlib import Path

_waiting: list[subprocess.Popen[bytes]] = []


def start() -> None:
    """Start the process; it waits for its job, and ends with this process."""
    program = f"import sys; sys.path[:] = {sys.path!r}; from grader.judge.build_process import main; main()"
    _waiting.append(
        subprocess.Popen(
            [sys.executable, "-c", program],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C is handled by this process, which stops the other one
        )
    )


def load_torch() -> None:
    """Load torch's largest library in a thread: a sixth of torch's import, and it does not need the GIL.

    The loader loads one library at a time, so the libraries of NumPy and msgspec, which the command line needs, are
    loaded first.
    """
    import ctypes
    import threading
    from importlib.machinery import PathFinder

    import msgspec  # noqa: F401
    import numpy  # noqa: F401

    def load() -> None:
        spec = PathFinder.find_spec("torch")
        if spec is not None and spec.origin:
            with suppress(OSError):  # the library is at another path: importing torch finds it
                ctypes.CDLL(str(Path(spec.origin).parent / "lib" / "libtorch_cpu.so"))

    threading.Thread(target=load, daemon=True).start()


def take() -> subprocess.Popen[bytes]:
    """Return the process that was started, or a new one."""
    if not _waiting:
        start()
    return _waiting.pop()
