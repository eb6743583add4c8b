"""Drawings of tiles: their banks in shared memory, and the computation of a thread in registers."""

from __future__ import annotations

from typing import Any

from grader.report.notebook import style
from grader.report.notebook.pictures.parts import arrow, box, canvas, label

BANKS = 32


def draw_tile_banks() -> Any:
    """Draw tile[32][32] and tile[32][33], each word in the color of its bank, with one column marked."""
    import matplotlib.pyplot as plt
    import numpy as np
    from matplotlib.patches import Rectangle

    figure, axes = plt.subplots(1, 2, figsize=(8.0, 4.1), layout="constrained", width_ratios=[32, 33])
    for ax, width in zip(axes, (32, 33)):
        word = np.arange(32)[:, None] * width + np.arange(width)
        shown = ax.imshow(word % BANKS, cmap="twilight", vmin=0, vmax=BANKS - 1)
        ax.add_patch(Rectangle((4.5, -0.5), 1, 32, fill=False, edgecolor="black", lw=1.6))
        banks = sorted({int(bank) for bank in word[:, 5] % BANKS})
        where = f"bank {banks[0]} alone" if len(banks) == 1 else f"all {len(banks)} banks"
        ax.set_title(f"float tile[32][{width}]: column 5 lies in {where}", fontsize=9)
        ax.set(xlabel="column", ylabel="row")
        ax.set_xticks([0, 5, 16, 31 if width == 32 else 32])
        if width == 33:
            ax.add_patch(Rectangle((31.5, -0.5), 1, 32, fill=False, edgecolor="white", hatch="////", lw=0))
    figure.colorbar(shown, ax=axes, label="bank", ticks=[0, 8, 16, 24, 31], shrink=0.8)
    return figure


def draw_register_tile() -> Any:
    """Draw one step k of version 4 of the linear layer: the values that thread (tx 5, ty 3) reads, and its 16 sums."""
    tx, ty, side, unit = 5, 3, 64, 0.5
    ax = canvas(86, 47)
    left, top = 14, 35  # the thread's corner in the tile of outputs
    for thread in range(16):
        for other in range(16):
            mine = (thread, other) == (tx, ty)
            corner = (left + 4 * unit * thread, top - 4 * unit * (other + 1))
            box(ax, corner, (4 * unit, 4 * unit), color=style.GREEN if mine else "#f3f5f7", edge="white", lw=0.5)
    high = top - 4 * unit * (ty + 1)
    across = left + 4 * unit * tx
    box(ax, (left, top + 2), (side * unit, 1.6), color=style.PALE_ORANGE, edge="none")
    box(ax, (across, top + 2), (4 * unit, 1.6), color=style.ORANGE, edge="none")
    box(ax, (left - 4, top - side * unit), (1.6, side * unit), color=style.PALE_BLUE, edge="none")
    box(ax, (left - 4, high), (1.6, 4 * unit), color=style.BLUE, edge="none")
    arrow(ax, (across + 1, top + 1.8), (across + 1, high + 2.2), style.ORANGE)
    arrow(ax, (left - 2.2, high + 1), (across - 0.2, high + 1), style.BLUE)
    label(ax, (left, top + 5.2), "w_tile[k]: 64 features, at one k", 8)
    label(ax, (left - 6, top - 16), "x_tile[k]: 64 rows, at one k", 8, rotation=90, ha="center")
    label(ax, (left, 1.2), "out: 64 x 64, one block of 16 x 16 threads", 8)
    # The 4 x 4 outputs of thread (tx 5, ty 3), enlarged.
    x0, y0, size = 58, 12, 4.4
    for i in range(4):
        box(ax, (x0 - 6.4, y0 + size * (3 - i)), (size - 0.3, size - 0.3), f"a{i}", style.BLUE)
        box(ax, (x0 + size * i, y0 + 4 * size + 2), (size - 0.3, size - 0.3), f"b{i}", style.ORANGE)
        for j in range(4):
            box(ax, (x0 + size * j, y0 + size * (3 - i)), (size - 0.3, size - 0.3), f"a{i}b{j}", style.GREEN, font=7)
    arrow(ax, (across + 2.3, high + 1), (x0 - 7.6, y0 + 2 * size), style.GREEN)
    label(ax, (x0 - 6.4, y0 + 5 * size + 5.2), "thread (tx 5, ty 3), in registers:", 8, weight="bold")
    label(ax, (x0 - 6.4, y0 - 3), "2 reads of 16 bytes: a0 to a3 and b0 to b3", 8)
    label(ax, (x0 - 6.4, y0 - 6), "16 multiply-adds: sum[i][j] += ai · bj", 8)
    label(ax, (x0 - 6.4, y0 - 9), "then the same for the next k", 8)
    return ax.figure


def draw_double_buffering() -> Any:
    """Draw a time line of a block's loads and multiply-adds, with one pair of tiles in shared memory and with two."""
    load, multiply, rounds, height = 6.0, 8.0, 4, 4.0
    ax = canvas(88, 35)
    for buffers, top in ((1, 26.5), (2, 8.5)):
        begin, ready = 12.0, [0.0] * rounds
        free = begin  # time at which the arithmetic units finish the previous tiles
        loaded = begin
        for i in range(rounds):
            first = max(loaded, free) if buffers == 1 else loaded
            if buffers == 2 and i >= 2:
                first = max(first, ready[i - 2])  # wait until round i - 2 has used the pair of tiles
            color = (style.BLUE, style.PALE_BLUE)[i % buffers]
            box(ax, (first, top), (load, height), f"load {i}", color, font=7)
            loaded = first + load
            start = max(loaded, free)
            color = (style.ORANGE, style.PALE_ORANGE)[i % buffers]
            box(ax, (start, top - height - 0.6), (multiply, height), f"multiply {i}", color, font=7)
            free = ready[i] = start + multiply
        title = "one pair of tiles: loads and multiply-adds alternate"
        if buffers == 2:
            title = "two pairs, dark and pale: loads overlap multiply-adds"
        label(ax, (begin, top + height + 2), f"{title}; {rounds} rounds take {free - begin:g}", 9, weight="bold")
        label(ax, (begin - 1, top + height / 2), "memory", 8, ha="right")
        label(ax, (begin - 1, top - height / 2 - 0.6), "arithmetic", 8, ha="right")
        # There is a barrier after the multiply-adds of each round. With one pair of tiles, each load also has one.
        for i in range(rounds):
            at = ready[i] + 0.02
            ax.plot([at, at], [top - height - 1.2, top + height + 0.6], color=style.RED, lw=1.2)
            if buffers == 1:
                at = ready[i] - multiply
                ax.plot([at, at], [top - height - 1.2, top + height + 0.6], color=style.RED, lw=1.2)
    ax.plot([12 + load] * 2, [8.5 - height - 1.2, 8.5 + height + 0.6], color=style.RED, lw=1.2)
    label(
        ax,
        (12, 1.2),
        "red: __syncthreads(). In this example, a load takes 6 units of time, the multiply-adds of a round 8.",
        8,
    )
    return ax.figure
