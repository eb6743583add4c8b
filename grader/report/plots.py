"""Saves plots as PNG files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from grader.setup.errors import GraderError

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def save(draw: Callable[[], Figure], path: Path, advice: str) -> None:
    """Save the plot that ``draw`` returns. ``advice``: what to do if the file cannot be written."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    figure = draw()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=150)
    except (OSError, ValueError) as error:
        raise GraderError(f"cannot write {path}: {error}", advice) from error
    finally:
        plt.close(figure)
