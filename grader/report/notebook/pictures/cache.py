"""The memory layout of a paged KV cache."""

from __future__ import annotations

from typing import Any

from grader.report.notebook import style
from grader.report.notebook.pictures.parts import box, canvas, label


def draw_cache_layout() -> Any:
    """Draw the cache [pages, kv_heads, page_size, head_dim], each dimension as a level, with its stride."""
    ax = canvas(100, 47)
    label(ax, (1, 44.8), "k_cache[pages][kv_heads][page_size][head_dim], here [8][2][4][head_dim]", 9, weight="bold")
    for page in range(8):
        box(ax, (1 + 12.2 * page, 36), (11.6, 5.5), f"page {page}", style.BLUE if page == 5 else style.PALE_BLUE)
    for head in range(2):
        box(
            ax, (13 + 37 * head, 24.5), (36, 5.5), f"key/value head {head}", style.ORANGE if head else style.PALE_ORANGE
        )
    for row in range(4):
        box(ax, (13 + 18.3 * row, 13), (17.5, 5.5), f"row {row}", style.GREEN if row == 2 else style.PALE_GREEN)
    for column in range(16):
        box(ax, (13 + 4.56 * column, 3), (4.2, 4), "…" if column == 8 else "", style.PALE, font=7)
    label(ax, (13, 1.2), "head_dim columns: one key, in one piece", 7.5)
    for (left, right), top, (low_left, low_right), low in (
        ((62, 73.6), 36, (13, 86), 30),
        ((50, 86), 24.5, (13, 85.4), 18.5),
        ((49.6, 67.1), 13, (13, 85.6), 7),
    ):
        for start, end in ((left, low_left), (right, low_right)):
            ax.plot([start, end], [top, low], color=style.GRAY, lw=0.8, ls=":")
    for height, name, stride in (
        (33.2, "page", "kv_heads · page_size · head_dim"),
        (21.7, "head", "page_size · head_dim"),
        (10.2, "row", "head_dim"),
    ):
        label(
            ax,
            (99, height),
            f"stride from one {name} to the next: {stride}",
            7.5,
            ha="right",
            bbox={"fc": "white", "ec": "none", "pad": 1},
        )
    label(ax, (1, 15.7), "slot 22 =\n5 · 4 + 2", 8, style.GREEN)
    return ax.figure
