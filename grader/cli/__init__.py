"""The ``grader`` command: one file per subcommand. ``main`` is the entry point and determines every exit code.

0 passed, 1 failed, 2 could not grade; 130 when interrupted.
"""

from __future__ import annotations

import atexit
import gc
import os
import signal
import sys
from contextlib import suppress


def is_interrupt(error: BaseException | None) -> bool:
    """Return whether Ctrl-C caused an error. During an import, Ctrl-C may raise another exception."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error is not None


def main() -> None:
    """Run the console script."""
    if sys.argv[1:2] not in (["run"], ["nvcc"]):  # these two start other programs, which inherit the variable
        # OpenBLAS would start threads that spin for 0.1 s on cores that the compilers need.
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    gc.set_threshold(500_000)  # collect garbage less often: it took a fifth of torch's import time
    try:
        if sys.argv[1:2] == ["check"]:
            from grader.frontend.toolchain import ahead

            ahead.start()
            ahead.load_torch()
        # Import inside the try block, so that Ctrl-C during the import is handled like Ctrl-C after it.
        from grader.cli.app import INTERRUPTED, run

        code = run()
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the command is done: ignore Ctrl-C from here on
    except (KeyboardInterrupt, Exception) as error:
        if not is_interrupt(error):
            raise
        print("\ninterrupted", file=sys.stderr)
        os._exit(130)
    if code != INTERRUPTED:
        # Exit normally if torch is not loaded. In a check, a thread may still be importing torch.
        if "torch" not in sys.modules and sys.argv[1:2] != ["check"]:
            sys.exit(code)
        atexit._run_exitfuncs()
    # A normal exit would traverse all objects of torch, which takes 0.1 to 0.4 s and has no effect. After an interrupt
    # it would wait for compilers in other threads. If the interrupt came inside an import of torch, Python would end by
    # the signal and lose the exit code.
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError):  # the reader of the pipe may have ended
            stream.flush()
    os._exit(code)
