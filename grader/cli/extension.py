"""``%load_ext grader``: the functions that IPython calls. It checks for missing packages before it imports others."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING

from grader.setup.errors import GraderError

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

PACKAGES = {
    "torch": "torch",
    "rich": "rich",
    "typer": "typer",
    "jinja2": "jinja2",
    "elftools": "pyelftools",
    "msgspec": "msgspec",
    "pygments": "pygments",
    "matplotlib": "matplotlib",
}
"""The modules that grading in a notebook needs, each with the package to install."""


def load(shell: InteractiveShell) -> None:
    """Register the magics in a notebook; raise if its Python lacks a package."""
    importlib.invalidate_caches()
    lacking = [package for module, package in PACKAGES.items() if importlib.util.find_spec(module) is None]
    if lacking:
        names = " ".join(lacking)
        raise GraderError(
            f"this notebook's Python has no {', '.join(lacking)}",
            f"Run %pip install {names}, then %load_ext grader again.",
        )
    from grader.cli import magics

    magics.register(shell)


def unload(shell: InteractiveShell) -> None:
    """Remove the magics; ``%reload_ext`` calls this before ``load``."""
    from grader.cli import magics

    magics.unregister(shell)
