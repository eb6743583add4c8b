"""The grader of *LLM kernels, day by day*: builds, runs and judges CUDA kernels, with or without a GPU.

Importing this package is cheap: ``load_kernel`` imports torch on first use. If a package that the course needs is
missing, programs that import this one end with one line that says what to install.
"""

from __future__ import annotations

from typing import Any

from grader.setup.packages import explain_missing_packages

__version__ = "0.1.0"
__all__ = ["__version__", "load_ipython_extension", "load_kernel", "unload_ipython_extension"]


def __getattr__(name: str) -> Any:
    if name == "load_kernel":
        from grader.execution.in_process.kernel import load_kernel

        return load_kernel
    raise AttributeError(f"module 'grader' has no attribute {name!r}")


def load_ipython_extension(shell: Any) -> None:
    """Load the magics for ``%load_ext grader``; IPython requires this function's name."""
    from grader.cli import extension

    extension.load(shell)


def unload_ipython_extension(shell: Any) -> None:
    """Remove the magics for ``%unload_ext grader``; IPython requires this function's name."""
    from grader.cli import extension

    extension.unload(shell)


explain_missing_packages()
