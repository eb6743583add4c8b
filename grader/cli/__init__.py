"""The ``grader`` command: one file per subcommand. ``main`` is the way in and decides every exit code.

0 passed, 1 failed, 2 could not grade; 130 when interrupted.
"""

from __future__ import annotations

import atexit
import gc
import os
import signal
import sys
from contextlib import suppress


def of_an_interrupt(error: BaseException | None) -> bool:
    """Return whether Ctrl-C caused an error: Python raises another one when it interrupts the creation of a class or a module."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error is not None


def main() -> None:
    """Run the console script."""
    if sys.argv[1:2] not in (["run"], ["nvcc"]):  # which start other people's programs
        # NumPy's other threads would spin for 0.1 s on cores that compilers need.
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    gc.set_threshold(500_000)  # looking for garbage took a fifth of the time of importing torch
    try:
        if sys.argv[1:2] == ["check"]:
            from grader.frontend.toolchain import ahead

            ahead.start()
            ahead.load_torch()
        # Here, not above: an interrupt that comes while modules are loaded shall end as quietly as a later one.
        from grader.cli.app import INTERRUPTED, run

        code = run()
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # all is said: what is left is to end
    except (KeyboardInterrupt, Exception) as error:
        if not of_an_interrupt(error):
            raise
        print("\ninterrupted", file=sys.stderr)
        os._exit(130)
    if code != INTERRUPTED:
        if "torch" not in sys.modules and sys.argv[1:2] != ["check"]:  # one that ends early may still be loading torch
            sys.exit(code)
        atexit._run_exitfuncs()
    # Ending as usual would look through all that torch holds, which took 0.1 to 0.4 s and goes with the process. After
    # an interrupt it would wait for compilers in other threads; and Python, where the key was pressed inside an import
    # of torch, would end by the signal and lose the exit code.
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError):  # nobody reads on
            stream.flush()
    os._exit(code)
