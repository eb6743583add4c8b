"""``%load_ext grader``: the functions that IPython calls. It checks for missing packages before it imports others."""

from __future__ import annotations

import importlib
import shlex
from typing import TYPE_CHECKING

from grader.setup.errors import GraderError
from grader.setup.packages import REQUIREMENTS, missing_packages

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell


def load(shell: InteractiveShell) -> None:
    """Register the magics in a notebook; raise if its Python lacks a package."""
    importlib.invalidate_caches()
    if missing := missing_packages():
        raise GraderError(
            f"this notebook's Python has no {', '.join(missing)}",
            f"Run %pip install {shlex.join(REQUIREMENTS[name] for name in missing)}, then %load_ext grader again.",
        )
    from grader.cli import magics

    magics.register(shell)


def unload(shell: InteractiveShell) -> None:
    """Remove the magics; ``%reload_ext`` calls this before ``load``."""
    from grader.cli import magics

    magics.unregister(shell)
