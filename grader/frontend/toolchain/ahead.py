"""What a check needs in any case, begun before the command line is read.

The process that builds kernels takes as long to import what it needs as that takes; see ``grader/judge/build_process.py``.
"""

from __future__ import annotations

import subprocess
import sys
from contextlib import suppress
from pathlib import Path

_waiting: list[subprocess.Popen[bytes]] = []


def start() -> None:
    """Start the process; its job follows, or it ends with this process."""
    program = f"import sys; sys.path[:] = {sys.path!r}; from grader.judge.build_process import main; main()"
    _waiting.append(
        subprocess.Popen(
            [sys.executable, "-c", program],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C is for this process, which says what is to end
        )
    )


def load_torch() -> None:
    """Load the largest library of torch in a thread: a sixth of torch's import, for which Python's lock is not needed.

    The loader loads one library at a time. So those that the command line wants meanwhile come first: NumPy's and msgspec's.
    """
    import ctypes
    import threading
    from importlib.machinery import PathFinder

    import msgspec  # noqa: F401
    import numpy  # noqa: F401

    def load() -> None:
        spec = PathFinder.find_spec("torch")
        if spec is not None and spec.origin:
            with suppress(OSError):  # it lies elsewhere: the import will find it
                ctypes.CDLL(str(Path(spec.origin).parent / "lib" / "libtorch_cpu.so"))

    threading.Thread(target=load, daemon=True).start()


def take() -> subprocess.Popen[bytes]:
    """The process that was started, or a new one."""
    if not _waiting:
        start()
    return _waiting.pop()
