"""Pictures of which thread touches which address: the sectors of a global access, the banks of a shared one.

A picture shows one request: the memory access of one instruction in the 32 lanes of one warp. Requests come from a run
on the simulator (``requests``) or from a formula (``pattern``)::

    draw_sectors(requests(kernel.report, line=12)[0])
    draw_banks(pattern(lambda lane: lane * 32 * 4))
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from grader.report.notebook import style
from grader.setup.errors import GraderError
from grader.verdict.words import count

SECTOR = 32
"""The bytes of a sector, the unit in which global memory moves data."""
BANKS = 32
WORD = 4
"""The bytes of a word: the width of a bank."""
MOST_SECTORS = 32
PER_ROW = 4
"""The sectors in one row of a picture: a line of 128 bytes."""


@dataclass(frozen=True)
class Request:
    """One instruction in one warp: the byte address that each lane touches."""

    addresses: dict[int, int] = field(default_factory=dict)
    """The byte address by lane, relative to any multiple of 128. Inactive lanes are missing."""
    size: int = 4
    """The bytes per lane."""
    write: bool = False
    line: int = 0
    name: str = ""
    """The name of the tensor or the shared array."""

    @property
    def verb(self) -> str:
        """The verb for the access: reads or writes."""
        return "writes" if self.write else "reads"

    def sectors(self) -> list[int]:
        """Return the numbers of the accessed sectors, in order."""
        return sorted(
            {byte // SECTOR for address in self.addresses.values() for byte in (address, address + self.size - 1)}
        )

    def ideal_sectors(self) -> int:
        """Return the minimum number of sectors that can hold the accessed bytes."""
        touched = {address + byte for address in self.addresses.values() for byte in range(self.size)}
        return -(-len(touched) // SECTOR)

    def phases(self) -> list[list[int]]:
        """Return groups of lanes that shared memory serves together.

        With up to 4 bytes per lane, that is the whole warp; with 8 bytes each half, with 16 bytes each quarter. Two
        neighboring groups merge for reads in which lanes i and i ^ 1 (or i and i ^ 2) have equal addresses.

        """
        lanes = sorted(self.addresses)
        together = max(1, BANKS * WORD // max(WORD, self.size))
        if together < 32 and not self.write and (self._pairs_agree(1) or self._pairs_agree(2)):
            together *= 2
        groups = [[lane for lane in lanes if lane // together == part] for part in range(-(-32 // together))]
        return [group for group in groups if group]

    def _pairs_agree(self, distance: int) -> bool:
        """Return whether lanes i and i ^ distance have equal addresses, for all i. Inactive lanes do not count."""
        return all(self.addresses.get(lane ^ distance, address) == address for lane, address in self.addresses.items())

    def bank_rows(self) -> list[dict[int, dict[int, list[int]]]]:
        """Return for each phase the distinct words of each bank, with the lanes that access them."""
        rows = []
        for lanes in self.phases():
            banks: dict[int, dict[int, list[int]]] = {}
            for lane in lanes:
                first, last = self.addresses[lane] // WORD, (self.addresses[lane] + self.size - 1) // WORD
                for word in range(first, last + 1):
                    banks.setdefault(word % BANKS, {}).setdefault(word, []).append(lane)
            rows.append(banks)
        return rows

    def wavefronts(self) -> int:
        """Return the number of wavefronts: for each phase, the number of distinct words in its busiest bank."""
        return sum(max(len(words) for words in banks.values()) for banks in self.bank_rows())


def pattern(
    address: Callable[[int], int], size: int = 4, lanes: int = 32, write: bool = False, name: str = ""
) -> Request:
    """Return the request in which lane i touches ``size`` bytes at the byte address ``address(i)``."""
    return Request({lane: int(address(lane)) for lane in range(lanes)}, size, write, name=name)


def requests(
    report: Any, line: int | None = None, space: str | None = None, name: str | None = None, warp: int | None = None
) -> list[Request]:
    """Return the requests that the simulator recorded in a kernel's last call, in execution order.

    ``report``: ``kernel.report``. The other arguments select requests: by source line, by space ("global" or "shared"),
    by the name of a tensor or an array, by warp. The simulator records only the first block of a launch, and
    there only the first requests of each access in the source.
    """
    found = []
    for item in report.trace:
        wanted = (line in (None, item.line), space in (None, item.space), name in (None, item.name))
        if all(wanted) and warp in (None, item.warp):
            addresses = {int(lane): int(address) for lane, address in item.addresses.items()}
            found.append(Request(addresses, item.size, item.write, item.line, item.name))
    if not found:
        lines = sorted({item.line for item in report.trace})
        raise GraderError("no such access was recorded", f"Lines with recorded accesses: {lines or 'none'}.")
    return found


def draw_sectors(request: Request, ax: Any = None, title: str | None = None) -> Any:
    """Draw the 32-byte sectors of a global access; each piece has the color and number of the lane that touches it."""
    import matplotlib.pyplot as plt
    from matplotlib.patches import Rectangle

    _must_have_lanes(request)
    sectors = request.sectors()
    shown = sectors[:MOST_SECTORS]
    rows = -(-len(shown) // PER_ROW)
    cell = min(WORD, request.size)
    cells = SECTOR // cell
    if ax is None:
        _, ax = plt.subplots(figsize=(8.0, 0.7 + 0.42 * rows))
    owners: dict[int, list[int]] = {}
    for lane, address in sorted(request.addresses.items()):
        for piece in range(address // cell, (address + request.size - 1) // cell + 1):
            owners.setdefault(piece, []).append(lane)
    pitch = 1.05
    for place, sector in enumerate(shown):
        x, y = (place % PER_ROW) * pitch, -(place // PER_ROW) * 1.0
        for index in range(cells):
            lanes = owners.get(sector * cells + index, [])
            color = style.lane_color(lanes[0]) if lanes else style.PALE
            ax.add_patch(Rectangle((x + index / cells, y), 1 / cells, 0.55, facecolor=color, edgecolor="white", lw=0.6))
            if lanes and cells <= 8:
                text = str(lanes[0]) if len(lanes) == 1 else f"{lanes[0]}+"
                ax.text(
                    x + (index + 0.5) / cells,
                    y + 0.27,
                    text,
                    ha="center",
                    va="center",
                    fontsize=6.5,
                    color=style.text_on(color),
                )
        ax.text(x, y - 0.04, f"+{(sector - sectors[0]) * SECTOR}", ha="left", va="top", fontsize=6.5, color=style.GRAY)
    ax.set_xlim(-0.05, PER_ROW * pitch)
    ax.set_ylim(-(rows - 1) - 0.3, 0.62)
    style.bare(ax)
    if title is None:
        title = f"{_what(request)}: {count(len(sectors), 'sector')}, minimum {request.ideal_sectors()}"
        if len(sectors) > len(shown):
            title += f" (the first {len(shown)} are drawn)"
    ax.set_title(title, loc="left")
    return ax


def draw_banks(request: Request, ax: Any = None, title: str | None = None) -> Any:
    """Draw the 32 banks of shared memory. Words stacked in one bank are accessed one after another."""
    import matplotlib.pyplot as plt
    from matplotlib.patches import Rectangle

    _must_have_lanes(request)
    phases = request.bank_rows()
    height = request.wavefronts()
    if ax is None:
        _, ax = plt.subplots(figsize=(8.0, 1.1 + min(4.2, 0.3 * height)))
    for bank in range(BANKS):
        ax.add_patch(Rectangle((bank, 0), 1, height, facecolor="white", edgecolor=style.PALE, lw=0.6))
    base = 0
    for banks in phases:
        tall = max(len(words) for words in banks.values())
        for bank, words in banks.items():
            for level, word in enumerate(sorted(words)):
                lanes = words[word]
                color = style.lane_color(lanes[0])
                ax.add_patch(
                    Rectangle(
                        (bank, base + level), 1, 1, facecolor=color, edgecolor="white", lw=0.6 if height < 20 else 0.2
                    )
                )
        if height <= 14:
            _name_lanes(ax, banks, base)
        base += tall
    ax.set_xlim(-0.2, BANKS + 0.2)
    ax.set_ylim(0, height)
    marked = [*range(0, BANKS, 4), BANKS - 1]
    ax.set_xticks([bank + 0.5 for bank in marked], [str(bank) for bank in marked])
    ax.set_yticks([0, height])
    ax.set_xlabel("bank")
    ax.set_ylabel("wavefronts")
    ax.tick_params(length=0)
    for spine in ax.spines.values():
        spine.set_visible(False)
    if title is None:
        ideal = len(phases)
        title = f"{_what(request)}: {count(height, 'wavefront')}"
        title += ", the minimum" if height == ideal else f", minimum {ideal} ({height / ideal:g}-way conflict)"
    ax.set_title(title, loc="left")
    return ax


def _name_lanes(ax: Any, banks: dict[int, dict[int, list[int]]], base: int) -> None:
    """Label each word with its lanes. Neighboring words with the same lanes get one label."""
    runs: list[tuple[int, int, list[int]]] = []  # the word's row in the drawing, its first bank, its lanes
    width: dict[tuple[int, int], int] = {}
    for bank, words in sorted(banks.items()):
        for level, word in enumerate(sorted(words)):
            before = next((run for run in runs if run[0] == level and run[1] + width[run[:2]] == bank), None)
            if before and before[2] == words[word]:
                width[before[:2]] += 1
            else:
                runs.append((level, bank, words[word]))
                width[level, bank] = 1
    for level, bank, lanes in runs:
        wide = width[level, bank]
        text = ", ".join(map(str, lanes)) if len(lanes) <= max(1, wide) else f"{lanes[0]}+"
        where = (bank + wide / 2, base + level + 0.5)
        ax.text(*where, text, ha="center", va="center", fontsize=6.5, color=style.text_on(style.lane_color(lanes[0])))


def compare(
    before: Request, after: Request, draw: Callable[..., Any] = draw_sectors, titles: Sequence[str] = ("", "")
) -> Any:
    """Draw two requests one above the other: the same access before and after a change."""
    import matplotlib.pyplot as plt

    if draw is draw_sectors:
        heights = [max(1, -(-min(MOST_SECTORS, len(request.sectors())) // PER_ROW)) for request in (before, after)]
    else:
        heights = [max(2, min(14, request.wavefronts())) for request in (before, after)]
    unit = 0.42 if draw is draw_sectors else 0.3
    figure, axes = plt.subplots(
        2, 1, figsize=(8.0, 1.6 + unit * sum(heights)), gridspec_kw={"height_ratios": heights}, layout="constrained"
    )
    for ax, request, title in zip(axes, (before, after), titles):
        draw(request, ax, None)
        if title:
            ax.set_title(f"{title}: {ax.get_title(loc='left')}", loc="left")
    return figure


def _what(request: Request) -> str:
    where = f"line {request.line}" if request.line else "a warp"
    return f"{where} {request.verb} {request.name}".rstrip()


def _must_have_lanes(request: Request) -> None:
    if not request.addresses:
        raise GraderError("this request has no lanes: nothing to draw")
