"""Finds missing packages of the course, and says in one line what to install.

Scripts of the course also run with a Python that ``make`` did not set up, such as one of a container that has torch.
"""

from __future__ import annotations

import importlib.util
import shlex
import sys
from types import TracebackType

REQUIREMENTS = {
    "elftools": "pyelftools",
    "hypothesis": "hypothesis",
    "jinja2": "jinja2",
    "matplotlib": "matplotlib>=3.10",
    "msgspec": "msgspec",
    "nbclient": "nbclient",
    "nbformat": "nbformat",
    "numpy": "numpy",
    "PIL": "pillow",
    "pytest": "pytest",
    "rich": "rich",
    "torch": "torch>=2.9",
    "transformers": "transformers>=5.17",
    "typer": "typer<0.29",
    "watchfiles": "watchfiles",
}
"""The modules that the course's programs import, with their requirements in pyproject.toml."""

NEEDED = ("elftools", "jinja2", "matplotlib", "msgspec", "numpy", "rich", "torch", "typer")
"""The modules without which neither the command nor a notebook can grade. Messages name all that are missing."""


def missing_packages() -> list[str]:
    """Return the modules of ``NEEDED`` that are not installed."""
    return [name for name in NEEDED if importlib.util.find_spec(name) is None]


def missing_package(error: BaseException | None) -> str:
    """Return what to install, in one line, if a package of the course is missing; empty for any other error."""
    name = error.name.partition(".")[0] if isinstance(error, ModuleNotFoundError) and error.name else ""
    if name not in REQUIREMENTS:
        return ""
    missing = list(dict.fromkeys([name, *missing_packages()]))
    verb = "is" if len(missing) == 1 else "are"
    requirements = shlex.join(REQUIREMENTS[package] for package in missing)
    return (
        f"{', '.join(missing)} {verb} not installed for {sys.executable}: run `make` in the course folder and use its "
        f".venv/bin/python, or run `{shlex.quote(sys.executable)} -m pip install {requirements}`"
    )


def explain_missing_packages() -> None:
    """Let Python print ``missing_package`` instead of the traceback of an uncaught error, and exit with code 2."""
    before = sys.excepthook

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if text := missing_package(error):
            print(f"error: {text}", file=sys.stderr)
            sys.exit(2)
        before(kind, error, trace)

    sys.excepthook = hook
