"""The style of all figures of the course: light axes, and a few colors with fixed meanings."""

from __future__ import annotations

import functools
from typing import Any

INK = "#24292f"
GRAY = "#8c959f"
PALE = "#e4e8ec"
BLUE = "#2f6f9f"
ORANGE = "#c7702e"
GREEN = "#2c7f57"
RED = "#b3372e"
PALE_BLUE = "#9cc3dd"
PALE_ORANGE = "#e8b98f"
PALE_GREEN = "#a9d3bb"

LANES = "viridis"
"""The color map for the 32 lanes of a warp: neighboring lanes have similar colors."""

SETTINGS: dict[str, Any] = {
    "figure.figsize": (8.0, 3.6),
    "figure.dpi": 96,
    "figure.facecolor": "white",
    "savefig.facecolor": "white",
    "savefig.bbox": "tight",
    "font.family": "DejaVu Sans",
    "font.size": 10,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": GRAY,
    "axes.linewidth": 0.8,
    "axes.titlesize": 11,
    "axes.titlelocation": "left",
    "axes.titleweight": "bold",
    "axes.titlepad": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": False,
    "axes.axisbelow": True,
    "xtick.color": GRAY,
    "ytick.color": GRAY,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "grid.color": PALE,
    "grid.linewidth": 0.8,
    "lines.linewidth": 1.8,
    # A legend has no frame, but a white ground: lines that pass below it do not cross its text.
    "legend.frameon": True,
    "legend.edgecolor": "none",
    "legend.framealpha": 0.9,
    "svg.hashsalt": "llm-kernels",
}


INLINE = ("inline", "module://matplotlib_inline.backend_inline")
"""The matplotlib backends that show a cell's figures as pictures below it."""


def use() -> None:
    """Set matplotlib's style. Lessons call it through ``lesson``."""
    import matplotlib
    from cycler import cycler

    if matplotlib.get_backend(auto_select=False) in INLINE:
        draw_once()
    matplotlib.rcParams.update(SETTINGS)
    matplotlib.rcParams["axes.prop_cycle"] = cycler(color=[BLUE, ORANGE, GREEN, RED, GRAY, INK])


def draw_once() -> None:
    """Keep pyplot from showing all figures at the end of a cell. A figure that a cell returns would appear twice."""
    import matplotlib
    import matplotlib.pyplot as plt

    # Switch the backend now. If pyplot switched it at the first figure, it would install the display hook again.
    plt.switch_backend(matplotlib.get_backend())
    plt.uninstall_repl_displayhook()


def bare(ax: Any) -> None:
    """Remove the frame and the ticks, for drawings that are not plots."""
    ax.set_xticks([])
    ax.set_yticks([])
    for spine in ax.spines.values():
        spine.set_visible(False)


@functools.cache  # matplotlib copies the color map at each lookup
def lane_color(lane: int) -> Any:
    """Return the color of one lane of a warp."""
    import matplotlib

    return matplotlib.colormaps[LANES](0.08 + 0.84 * lane / 31)


def text_on(color: Any) -> str:
    """Return white or dark text, whichever is readable on a color."""
    red, green, blue = color[:3]
    return "white" if 0.299 * red + 0.587 * green + 0.114 * blue < 0.55 else INK
