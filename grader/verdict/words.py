"""Formats numbers, sizes, positions and lists in the same way for all reports."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

DEVICES = {"cpu": "simulated GPU", "cuda": "GPU", "python": "Python"}


def count(number: float, noun: str, plural: str = "") -> str:
    """Return a number with a noun: ``1 case``, ``12 cases``, ``3,000 elements``."""
    return f"{number:,.0f} {noun if number == 1 else plural or noun + 's'}"


def value(number: float) -> str:
    """Return the value of a tensor's element as text of at most 12 characters."""
    if abs(number) < 1e9 and number == int(number):  # NaN and infinities are not less
        return f"{int(number)}"
    if 1e-4 <= abs(number) < 1e6:
        return f"{number:.6g}"
    return f"{number:.3e}"


def error(number: float) -> str:
    """Return an error with two significant digits."""
    if number == 0 or 0.01 <= abs(number) < 1000:
        return f"{number:.2g}"
    return f"{number:.1e}".replace("e-0", "e-").replace("e+0", "e+")


def times(ratio: float) -> str:
    """Return a ratio as text: ``1.25 times``, ``31 times``, ``41,000 times``, ``infinitely many times``."""
    if not math.isfinite(ratio):
        return "infinitely many times"
    if ratio < 10:
        return f"{ratio:.2f} times"
    return f"{float(f'{ratio:.2g}'):,.0f} times"


def short(number: float) -> str:
    """Return a counter as text of at most five characters: ``512``, ``32.8k``, ``1.05M``."""
    if not math.isfinite(number):
        return "-"
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(number) >= 10 * size or (abs(number) >= size and size > 1e3):
            return f"{number / size:.3g}{unit}"
    return f"{number:.0f}" if number == int(number) else f"{number:.3g}"


def amount(number: float) -> str:
    """Return a number of bytes with its unit: ``512 B``, ``48 KiB``, ``1.5 MiB``."""
    for size, unit in ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")):
        if number >= size:
            return f"{number / size:.4g} {unit}"
    return f"{number:.0f} B"


def microseconds(number: float | None) -> str:
    """Return a time with three digits or more: ``4.24 us``, ``1,936 us``, ``135 ms``; empty for None."""
    if number is None:
        return ""
    if number >= 1e5:
        return f"{number / 1000:,.0f} ms"
    return f"{number:,.0f} us" if number >= 1000 else f"{number:.3g} us"


def duration(seconds: float) -> str:
    """Return a duration with its units: ``0.8 s``, ``2 min 5 s``."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    return f"{int(seconds // 60)} min {seconds % 60:.0f} s"


def file(path: str) -> str:
    """Return a path; a file in the working folder gets a relative path."""
    if not os.path.isabs(path):
        return path
    relative = os.path.relpath(path)
    return path if relative.startswith("..") else relative


def position(index: Sequence[int]) -> str:
    """Return an index in brackets: ``[0, 3, 12]``."""
    return f"[{triple(index)}]"


def triple(numbers: Sequence[int] | None) -> str:
    """Return the index of a block or a thread without brackets: ``3, 0, 0``."""
    return ", ".join(map(str, numbers or ()))


def place(block: Sequence[int] | None, thread: Sequence[int] | None) -> str:
    """Return the known parts of ``block (3, 0, 0) thread (17, 0, 0)``."""
    known = {"block": block, "thread": thread}
    return " ".join(f"{name} ({triple(index)})" for name, index in known.items() if index is not None)


def sizes(dims: Mapping[str, Any]) -> str:
    """Return the sizes and options of a case: ``rows=3 columns=129 causal=true``."""
    return " ".join(f"{name}={str(item).lower() if isinstance(item, bool) else item}" for name, item in dims.items())


def listed(items: Iterable[str], most: int = 6) -> str:
    """Return items separated by commas. Of more than ``most`` items, return the first ones: ``a, b, c and 4 more``."""
    every = list(items)
    if len(every) > most:
        return ", ".join(every[: most - 1]) + f" and {len(every) - most + 1} more"
    return ", ".join(every)


def indented(text: str, by: str = "  ") -> str:
    """Return a text with each line indented."""
    return "\n".join(by + line for line in text.splitlines())
