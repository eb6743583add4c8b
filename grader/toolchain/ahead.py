"""The process that builds kernels for a check, which may be started before it is known what to build.

It takes as long to import what it needs as the command line takes to be read; see ``grader/judge/build_process.py``.
"""

from __future__ import annotations

import subprocess
import sys

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


def take() -> subprocess.Popen[bytes]:
    """The process that was started, or a new one."""
    if not _waiting:
        start()
    return _waiting.pop()
