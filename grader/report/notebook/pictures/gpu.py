"""Drawings of a GPU with its streaming multiprocessors (SMs), warps and memories, and of the warps of a block."""

from __future__ import annotations

from typing import Any

from grader.report.notebook import style
from grader.report.notebook.pictures.parts import arrow, box, canvas, label

WARP = 32


def draw_gpu() -> Any:
    """Draw a GPU with its SMs, the part of an SM that a block occupies, and the scope of each memory."""
    ax = canvas(100, 58)
    box(ax, (0.5, 0.5), (64.5, 57), color="#f6f8fa", edge=style.GRAY)
    label(ax, (2, 55.2), "GPU", 9, weight="bold")
    for number, left in enumerate((2, 23, 44)):
        _multiprocessor(ax, left, ("SM 0", "SM 1", "… SM 131")[number])
    box(ax, (2, 12.5), (61.5, 5), "L2 cache", style.PALE_ORANGE)
    box(ax, (2, 3), (61.5, 5.5), "device memory: what CUDA calls global memory", style.ORANGE)
    for left in (12, 33, 54):
        arrow(ax, (left, 21), (left, 17.6), looks="<->")
    arrow(ax, (33, 12.4), (33, 8.6), looks="<->")
    for height, head, line in (
        (48.2, "a warp", "32 threads, numbered by lane"),
        (41.2, "registers, 256 KB per SM", "each thread has its own registers"),
        (33.4, "a block", "it stays on one SM until it ends"),
        (24.7, "shared memory, up to 227 KB per block", "shared by the threads of one block"),
        (15.0, "L2 cache, 60 MB", "shared by all SMs; filled by the hardware"),
        (5.7, "device memory, 141 GB, 4.8 TB/s", "has all tensors; all threads can use it"),
    ):
        label(ax, (67, height + 1.1), head, 8.5, weight="bold")
        label(ax, (67, height - 1.7), line, 8)
    return ax.figure


def _multiprocessor(ax: Any, left: float, name: str) -> None:
    """Draw one SM with two blocks of four warps."""
    box(ax, (left, 21), (19.5, 33), color="white", edge=style.GRAY)
    label(ax, (left + 0.8, 52.2), name, 8, weight="bold")
    for block, (low, color) in enumerate(((40.2, style.BLUE), (29, style.GREEN))):
        box(ax, (left + 0.8, low), (17.9, 10.2), color="none", edge=color, linestyle="--", lw=1.1)
        label(ax, (left + 9.7, low + 1.5), "a block" if block else "another block", 7, color, ha="center")
        for warp in range(4):
            x = left + 1.6 + 4.25 * warp
            box(ax, (x, low + 6), (3.6, 3.2), "warp", color, font=6)
            box(ax, (x, low + 3.1), (3.6, 2.4), "regs", style.PALE, font=6)
    box(ax, (left + 0.8, 22.2), (17.9, 5), "shared memory and L1", style.PALE, font=7)


def draw_warps() -> Any:
    """Draw three two-dimensional blocks with the lane number of each thread, each warp in one color."""
    ax = canvas(66, 19.5)
    colors = (style.BLUE, style.ORANGE, style.GREEN, style.GRAY)
    for left, wide, high in ((0.5, 32, 4), (36, 16, 8), (56, 8, 16)):
        for y in range(high):
            for x in range(wide):
                warp, lane = divmod(x + wide * y, WARP)
                named = lane in (0, WARP - 1)
                corner = (left + x, 15 - y)
                box(ax, corner, (0.92, 0.92), color=colors[warp], edge="none", alpha=1.0 if named else 0.55)
                if named:
                    label(ax, (corner[0] + 0.46, 15.44 - y), str(lane), 6.5, "white", ha="center")
        label(ax, (left, 18.6), f"dim3({wide}, {high})", 9, weight="bold")
        label(ax, (left, 16.9), "threadIdx.x →", 7)
    label(ax, (0.5, 9.5), "One color is one warp; the numbers are lanes.", 8)
    label(ax, (0.5, 7.7), "Thread (x, y) is number x + blockDim.x · y of its block:", 8)
    label(ax, (0.5, 5.9), "that number / 32 is its warp, that number % 32 its lane.", 8)
    return ax.figure
