"""``%load_ext grader``: what IPython calls. Imports nothing that a hosted notebook may lack before it has looked."""

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
"""What grading in a notebook takes: modules, and the packages that they come in."""


def load(shell: InteractiveShell) -> None:
    """Give a notebook the magics, or say what its Python lacks."""
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
    """Take the magics away again; ``%reload_ext`` does so first."""
    from grader.cli import magics

    magics.unregister(shell)
