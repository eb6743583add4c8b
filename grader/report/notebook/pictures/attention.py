"""Drawings of attention: the data flow of its tiles, the elements of a thread, the merging of parts, causal windows."""

from __future__ import annotations

from typing import Any

from grader.report.notebook import style
from grader.report.notebook.pictures.parts import arrow, box, canvas, label


def draw_tile_route() -> Any:
    """Draw flash attention with register tiles: what moves from global to shared memory to registers, and how often."""
    ax = canvas(100, 58)
    for left, wide, name in (
        (0.5, 27, "global memory"),
        (33, 28, "shared memory of the block"),
        (66, 33.5, "registers of one thread"),
    ):
        box(ax, (left, 0.5), (wide, 52.5), color="#f6f8fa", edge=style.GRAY)
        label(ax, (left + wide / 2, 55.6), name, 9, weight="bold", ha="center")
    rows = {"q": (40.5, style.BLUE), "k": (28.5, style.ORANGE), "v": (16.5, style.GREEN)}
    pales = {"q": style.PALE_BLUE, "k": style.PALE_ORANGE, "v": style.PALE_GREEN}
    for name, (low, color) in rows.items():
        length, count, often = ("N", 128, "once") if name == "q" else ("M", 64, "per key tile")
        box(ax, (3, low), (7, 9.5), color=pales[name])
        box(ax, (3, low + (3.6 if name == "q" else 5.2)), (7, 2.2), color=color, edge="none")
        label(ax, (11.2, low + 8), f"{name} [{length}, D]", 8, weight="bold")
        label(ax, (11.2, low + 2.4), f"{count} rows,", 7.5)
        label(ax, (11.2, low + 0.2), often, 7.5)
        box(ax, (36, low + 1.2), (22, 7), f"{name} tile: {count} x D", color)
        arrow(ax, (11, low + 4.7), (35.8, low + 4.7), color)
    box(ax, (3, 4.5), (7, 9.5), color=style.PALE)
    label(ax, (11.2, 9.2), "out [N, D]", 8, weight="bold")
    box(ax, (36, 5.7), (22, 7), "P tile: 128 x 64", style.GRAY)
    box(ax, (69, 32), (12, 17), "S\n8 x 8\nscores,\nthen\nweights", style.PALE)
    box(ax, (85, 32), (12, 17), "m and l\nof its\n8 queries", style.PALE)
    box(ax, (69, 13.5), (28, 11), "O: 8 queries x D / 8 columns", style.PALE)
    arrow(ax, (58.2, 45.2), (68.8, 43), style.BLUE)
    arrow(ax, (58.2, 33.2), (68.8, 37), style.ORANGE)
    arrow(ax, (81.2, 40.5), (84.8, 40.5), style.INK, "<->")
    arrow(ax, (71.5, 31.8), (58.4, 10.8), style.GRAY)
    arrow(ax, (58.2, 20.2), (68.8, 20.2), style.GREEN)
    arrow(ax, (58.2, 8.2), (70, 13.2), style.GRAY)
    arrow(ax, (91, 31.8), (91, 24.7), style.INK)
    label(ax, (83, 28.2), "rescale", 7.5)
    ax.plot([76, 76, 6.5], [13.3, 2.6, 2.6], color=style.INK, lw=1.4)
    arrow(ax, (6.5, 2.3), (6.5, 4.6), style.INK)
    label(ax, (78, 7), "O / l, once at the end", 7.5)
    return ax.figure


def draw_ownership(tx: int = 3, ty: int = 5) -> Any:
    """Draw the elements of S and O that one thread of the lesson's kernel version 4 owns. A square is one register.

    head_dim is 64.
    """
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(8.0, 4.6), layout="constrained")
    queries = [ty + 16 * i for i in range(8)]
    keys = [tx + 8 * j for j in range(8)]
    columns = [32 * part + 4 * tx + c for part in range(2) for c in range(4)]
    for ax, owned, across in ((axes[0], keys, "key of the tile"), (axes[1], columns, "column of v and out")):
        ax.set_xlim(-1, 64)
        ax.set_ylim(128, -1)
        for line in range(0, 129, 16):
            ax.axhline(line - 0.5, color=style.PALE, lw=0.8)
        for line in range(0, 65, 8):
            ax.axvline(line - 0.5, color=style.PALE, lw=0.8)
        ax.scatter(
            [column for _ in queries for column in owned],
            [query for query in queries for _ in owned],
            marker="s",
            s=17,
            color=style.BLUE,
        )
        ax.set_yticks(queries)
        ax.set_xticks(owned if ax is axes[0] else [0, *columns[::4], 63])
        ax.set(xlabel=across, ylabel="query of the tile")
    axes[0].set_title("S = Q Kᵀ: keys tx, tx + 8, …", fontsize=9)
    axes[1].set_title("O += P V: columns 4 tx + c, 4 tx + 32 + c", fontsize=9)
    figure.suptitle(f"The 8 x 8 numbers of thread (tx {tx}, ty {ty}) in each matmul", fontsize=10)
    return figure


def draw_merge() -> Any:
    """Draw the merge of two parts with three keys each.

    The drawing has the maximum of each part, the factor that rescales a part to the common maximum, and the merged
    weights.
    """
    import matplotlib.pyplot as plt
    import numpy as np

    scores = np.array([0.2, 1.2, -0.4, 2.0, 2.6, 1.5])  # the sums of the rounded weights are right
    m1, m2 = scores[:3].max(), scores[3:].max()
    m = max(m1, m2)
    own = np.exp(scores - np.array([m1] * 3 + [m2] * 3))
    whole = np.exp(scores - m)
    figure, axes = plt.subplots(1, 2, figsize=(8.0, 3.2), layout="constrained", sharey=True)
    for ax, heights in zip(axes, (own, whole)):
        for part, color in ((slice(0, 3), style.BLUE), (slice(3, 6), style.ORANGE)):
            places = range(6)[part]
            ax.bar(places, heights[part], 0.8, color=color)
            for place in places:
                ax.text(place, heights[place] + 0.02, f"{heights[place]:.2f}", ha="center", fontsize=8)
        ax.set_xticks(range(6), [f"key {i}\ns = {s}" for i, s in enumerate(scores)], fontsize=8)
        ax.set_yticks([0, 1])
        ax.set_ylim(0, 1.45)
    axes[0].set_title("two parts, each relative to its own maximum", fontsize=9)
    axes[1].set_title("merged: all relative to the common maximum", fontsize=9)
    for place, index, mine, color in ((1, slice(0, 3), m1, style.BLUE), (4, slice(3, 6), m2, style.ORANGE)):
        axes[0].text(place, 1.3, f"m = {mine}, l = {own[index].sum():.2f}", ha="center", color=color, fontsize=9)
        factor = np.exp(mine - m)
        axes[1].text(place, 1.3, f"times $e^{{{mine} - {m}}}$ = {factor:.2f}", ha="center", color=color, fontsize=9)
    axes[1].text(
        2.5, 1.15, f"l = {whole[:3].sum():.2f} + {whole[3:].sum():.2f} = {whole.sum():.2f}", ha="center", fontsize=9
    )
    axes[0].set_ylabel("weight $e^{s - m}$")
    return figure


def draw_band(queries: int = 32, window: int = 10, block: int = 8, tile: int = 4, number: int = 2) -> Any:
    """Draw the (query, key) pairs of a causal window, and the key tiles that the query block ``number`` visits."""
    import matplotlib.pyplot as plt
    import numpy as np
    from matplotlib.patches import Rectangle

    query, key = np.arange(queries)[:, None], np.arange(queries)[None]
    seen = (key <= query) & (key > query - window)
    first = number * block
    begin, end = max(0, first - window + 1), first + block
    low = begin // tile * tile
    colors = np.ones((queries, queries, 3))
    colors[seen] = (0.82, 0.87, 0.92)
    inside = np.zeros_like(seen)
    inside[first:end, low:end] = True
    colors[inside & seen] = (0.18, 0.44, 0.62)
    colors[inside & ~seen] = (0.96, 0.86, 0.76)
    figure, ax = plt.subplots(figsize=(8.0, 5.0), layout="constrained")
    ax.imshow(colors)
    for line in range(queries + 1):
        ax.axhline(line - 0.5, color="white", lw=0.5)
        ax.axvline(line - 0.5, color="white", lw=0.5)
    for line in range(low, end + 1, tile):
        ax.plot([line - 0.5] * 2, [first - 0.5, end - 0.5], color=style.INK, lw=1.4)
    ax.add_patch(Rectangle((low - 0.5, first - 0.5), end - low, block, fill=False, edgecolor=style.INK, lw=1.4))
    ax.set_xticks(sorted({0, low, begin, end - 1, queries - 1}))
    ax.set_yticks([0, first, end - 1, queries - 1])
    ax.set(xlabel="key", ylabel="query")
    ax.set_title(f"a window of {window}, blocks of {block} queries, tiles of {tile} keys", fontsize=9)
    side = queries + 1
    notes = (
        (2, f"query {first}, the first of the block, sees keys from", style.INK),
        (3.6, f"{first} - {window} + 1 = {begin} on: their tile begins at {low}", style.INK),
        (7, f"query {end - 1}, the last, sees keys up to {end - 1}:", style.INK),
        (8.6, f"the loop over the keys ends at {end}", style.INK),
        (12, "dark: pairs of this block in the window", style.BLUE),
        (13.6, "orange: computed, but masked", style.ORANGE),
        (15.2, "pale: pairs of other blocks in the window", style.GRAY),
    )
    for height, text, color in notes:
        ax.text(side, height, text, fontsize=7.5, color=color, va="center", clip_on=False)
    return figure
