"""The output of a set-up: permanent lines and, on a terminal, one line below them that changes."""

from __future__ import annotations

import os
import shutil
import sys
import time

_SECONDS_BETWEEN = 0.1


def megabytes(number: float) -> str:
    """Format a size: 0.4 MB, 527 MB, 2.7 GB."""
    if number >= 1e9:
        return f"{number / 1e9:.1f} GB"
    return f"{number / 1e6:.0f} MB" if number >= 1e7 else f"{number / 1e6:.1f} MB"


class Display:
    """An output with permanent lines and one live line below them."""

    def __init__(self) -> None:
        self.live = sys.stdout.isatty() and os.environ.get("TERM") != "dumb"
        self._shown = False
        self._last = 0.0

    def say(self, text: str) -> None:
        """Print a permanent line."""
        self.clear()
        print(text, flush=True)

    def now(self, text: str) -> None:
        """Replace the live line; in a log, do nothing."""
        if not self.live or time.monotonic() - self._last < _SECONDS_BETWEEN:
            return
        self._last = time.monotonic()
        width = shutil.get_terminal_size().columns - 1
        print("\r\x1b[2K" + text[:width], end="", flush=True)
        self._shown = True

    def clear(self) -> None:
        """Remove the live line."""
        if self._shown:
            print("\r\x1b[2K", end="", flush=True)
            self._shown = False
