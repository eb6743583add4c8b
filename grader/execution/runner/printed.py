"""The text that a child process prints, kept in memory."""

from __future__ import annotations

import os

from grader.execution.runner.answers import MOST_PRINTED, clean


class Printed:
    """A file in memory to which a child process prints."""

    def __init__(self) -> None:
        self.file = os.memfd_create("grader-printed", os.MFD_CLOEXEC)
        self._seen = 0

    def new(self) -> str:
        """Return the text printed since the last call, without control characters, truncated if long."""
        size = os.fstat(self.file).st_size
        content = os.pread(self.file, max(0, min(size - self._seen, 4 * MOST_PRINTED)), self._seen)
        self._seen = size
        return clean(content.decode(errors="replace"))

    def close(self) -> None:
        """Free the memory."""
        os.close(self.file)
