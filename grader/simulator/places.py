"""Places in a kernel's source: where the code of a site is, and the text of its line.

libsim names places by the number of a site, whose offset in the kernel library the report lists.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Sequence
from pathlib import Path

from grader.frontend import course_headers
from grader.simulator import report_format
from grader.simulator.library import INCLUDE_DIRS
from grader.simulator.symbolize import UNKNOWN, Location, Symbolizer, symbolizer

_LINE_DIRECTIVE = re.compile(r"\s*#\s*line\s+(\d+)")
_MOST_LINES = 1_000_000


class Places:
    """The places of the sites in a report."""

    def __init__(self, data: report_format.Report, library: Path, source: Path | None) -> None:
        self.source = source
        self.symbols: Symbolizer = symbolizer(library, source)
        self._offsets = _offsets(data, library)
        self._locations = self.symbols.locate(self._offsets.values())
        self._lines: dict[str, Sequence[str]] = {}
        """The lines of each file read so far."""

    def location(self, site: int) -> Location:
        """Return the place of a site; ``UNKNOWN`` if it is not in the kernel library."""
        offset = self._offsets.get(site)
        return self._locations[offset] if offset is not None else UNKNOWN

    def locations(self) -> dict[int, Location]:
        """Return the places of all sites in the kernel library."""
        return {site: self._locations[offset] for site, offset in self._offsets.items()}

    def of_side(self, data: report_format.Side) -> Location:
        """Return the place of one side of a finding, with its column."""
        offset = self._offsets.get(data.site)
        place = self.symbols.with_column(offset) if offset is not None else UNKNOWN
        if not place.line and data.fallback in self._offsets:
            place = self.symbols.with_column(self._offsets[data.fallback])
        if not place.line and data.line:  # compilers drop the lines of merged calls
            place = Location(self.symbols.file_name, data.line)
        return place

    def source_line(self, place: Location) -> str:
        """Return the text of a line; empty if the file is not one of the kernel's."""
        if place.file not in self._lines:
            # Do not show other files: a #line directive can put any path of this machine into the debug information.
            ours = not self.source or place.file == str(self.source)
            shown = place.file if ours else _own_headers().get(os.path.normpath(place.file), "")
            self._lines[place.file] = source_lines(shown)
        lines = self._lines[place.file]
        return lines[place.line - 1] if 0 < place.line <= len(lines) else ""

    def file_text(self, place: Location) -> str:
        """Return the text of the file of a place whose line was read before."""
        return "\n".join(self._lines.get(place.file, ()))


def _offsets(data: report_format.Report, library: Path) -> dict[int, int]:
    """Return the offset of each site in the kernel library. Leave out sites in other libraries."""
    names = [Path(name) for name in data.modules]
    modules = [name in (library, library.resolve()) for name in names]
    # The library may have run under another name: in a jail, or before it was moved into the cache.
    if not any(modules):
        modules = [not name.name.startswith("lib") for name in names]
    return {site: offset for site, module, offset in data.sites if modules[module]}


@functools.cache
def _own_headers() -> dict[str, str]:
    """Return the paths of the simulator's and the course's headers: the only files shown besides the kernel's."""
    files = [*(path for folder in INCLUDE_DIRS for path in folder.rglob("*")), *course_headers.FOLDER.glob("*.cuh")]
    return {str(path): str(path) for path in files if path.is_file()}


@functools.lru_cache(maxsize=16)
def _lines_of_version(file: str, stamp: tuple[int, int]) -> Sequence[str]:
    return _as_compiled(Path(file).read_text(encoding="utf-8", errors="replace").splitlines())


def _as_compiled(lines: Sequence[str]) -> Sequence[str]:
    """Return the source lines by line number, as renumbered by ``#line`` directives."""
    if not any(_LINE_DIRECTIVE.match(line) for line in lines):
        return lines
    numbered: dict[int, str] = {}
    number = 1
    for line in lines:
        if match := _LINE_DIRECTIVE.match(line):
            number = min(int(match[1]), _MOST_LINES)
        else:
            numbered[number] = line
            number += 1
    return [numbered.get(number, "") for number in range(1, max(numbered, default=0) + 1)]


def source_lines(file: str) -> Sequence[str]:
    """Return the lines of a file, as renumbered by ``#line`` directives; none if it cannot be read."""
    try:
        stat = Path(file).stat()
        return _lines_of_version(file, (stat.st_mtime_ns, stat.st_size)) if file else ()
    except OSError:
        return ()
