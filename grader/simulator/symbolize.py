"""Conversion of addresses in a kernel library to places in the learner's file.

Each access calls a check, and the return address of this call identifies the access. ``addr2line`` gives its source
line. The column, for the caret of a finding, is read from the debug information.
"""

from __future__ import annotations

import bisect
import dataclasses
import functools
import io
import os
import re
import shutil
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from grader.frontend.course_headers import FOLDER, header_name
from grader.simulator import line_table
from grader.simulator.library import INCLUDE_DIRS
from grader.simulator.tools import LARGEST_LIBRARY, Server

_NOT_SHOWN = (*map(str, INCLUDE_DIRS), "/usr/")
_reading = threading.Lock()
"""Held while debug information is read. pyelftools keeps one read position per section, so a second thread that moved
it would make the first one parse garbage, possibly forever.
"""


@dataclass(frozen=True)
class Location:
    """A place in a source file; ``line`` is 0 if unknown. :func:`with_column` fills in ``column``."""

    file: str = ""
    line: int = 0
    column: int = 0
    depth: int = 0
    """The number of inlined calls between this place and the instruction."""
    inside: str = ""
    """If this place calls a function of a course header: the line there, such as ``llmk/reduce.cuh:31``."""
    in_kernel: int = 0
    """The line in the kernel itself. It differs from ``line`` if the place is in a function that the kernel calls."""


UNKNOWN = Location()


class Symbolizer:
    """The places of one kernel library. ``source`` is the kernel file, whose frames are preferred."""

    def __init__(self, library: Path | str, source: Path | str | None = None) -> None:
        self.library = Path(library)
        self.source = Path(source) if source is not None else None
        self._known: dict[int, Location] = {}
        self._columns: dict[int, int] = {}

    @property
    def file_name(self) -> str:
        """The path of the kernel file, as in locations."""
        return str(self.source) if self.source is not None else ""

    def locate(self, offsets: Iterable[int]) -> dict[int, Location]:
        """Return the places of return addresses, given as offsets in the library."""
        wanted = sorted({offset for offset in offsets if offset not in self._known})
        if wanted:
            for offset, frames in zip(wanted, _addr2line(self.library, [offset - 1 for offset in wanted])):
                place = self._choose(frames)
                self._known[offset] = place if place.line or not frames else self._nearby(offset - 1)
        return self._known

    def inlined_from(self, offsets: Iterable[int], files: Sequence[str]) -> set[int]:
        """Return the addresses whose code comes from one of these files, directly or inlined."""
        wanted = sorted(set(offsets))
        frames = _addr2line(self.library, [offset - 1 for offset in wanted])
        return {
            offset for offset, found in zip(wanted, frames) if any(os.path.basename(file) in files for file, _ in found)
        }

    def with_column(self, offset: int) -> Location:
        """Return the place of a return address with its column, if the debug information has one."""
        location = self.locate([offset])[offset]
        if offset not in self._columns and location.line:
            try:
                with _reading:
                    self._columns[offset] = _debug_info(self.library).column(offset - 1, location.depth)
            except Exception:  # the column is optional; unknown forms of debug information must not fail the run
                self._columns[offset] = 0
        return dataclasses.replace(location, column=self._columns.get(offset, 0))

    def _nearby(self, address: int) -> Location:
        """Return the nearest line before an address: instructions of optimized code may have line 0."""
        try:
            with _reading:
                name, line = _debug_info(self.library).line_before(address)
        except Exception:  # unknown forms of debug information must not fail the run
            return UNKNOWN
        known = self.source is not None and name == self.source.name
        return Location(str(self.source), line) if known else UNKNOWN

    def _choose(self, frames: Sequence[tuple[str, int]]) -> Location:
        """Return the innermost frame in the kernel file, else the innermost outside of the simulator's headers."""
        if self.source is not None:
            ours = [
                (depth, line)
                for depth, (file, line) in enumerate(frames)
                if line and os.path.basename(file) == self.source.name
            ]
            if ours:
                depth, line = ours[0]
                return Location(str(self.source), line, 0, depth, _in_header(frames[:depth]), ours[-1][1])
        for depth, (file, line) in enumerate(frames):
            if name := header_name(file):  # the compiler did not inline a function of a header
                return Location(str(FOLDER.parent / name), line, 0, depth)
            if line and not file.startswith(_NOT_SHOWN) and file != "launchers":
                return Location(file, line, 0, depth)
        return UNKNOWN


def _in_header(frames: Sequence[tuple[str, int]]) -> str:
    """Return the innermost of these frames that lies in a header of the course."""
    return next((f"{name}:{line}" for file, line in frames if (name := header_name(file)) and line), "")


@functools.lru_cache(maxsize=512)
def symbolizer(library: Path, source: Path | None = None) -> Symbolizer:
    """Return the symbolizer of a library, with its earlier results. Libraries in the build cache never change."""
    return Symbolizer(library, source)


_LAST = "0xffffffffffffffff"
"""An address outside of the code. Its answer is one line long and marks the end of the answers."""
_END = re.compile(rb"^0xf{16}\n.*\n\Z", re.MULTILINE)
_AT_ONCE = 1000
_asking = threading.Lock()


@functools.lru_cache(maxsize=2)
def _server(tool: str, library: Path, process: int) -> Server:
    """Return the addr2line server of this process. Processes that share one after a fork would mix up the answers."""
    return Server([tool, "-a", "-i", "-e", str(library)])


def _addr2line(library: Path, addresses: Sequence[int]) -> list[list[tuple[str, int]]]:
    """Return the frames of each address as file and line, innermost first. The list is empty for an unknown address."""
    tool = shutil.which("addr2line") or shutil.which("llvm-addr2line")
    if tool is None or not library.exists():
        return [[] for _ in addresses]
    frames: list[list[tuple[str, int]]] = []
    for begin in range(0, len(addresses), _AT_ONCE):
        some = addresses[begin : begin + _AT_ONCE]
        text = "".join(f"{address:#x}\n" for address in some)
        with _asking:
            printed = _server(tool, library, os.getpid()).ask(f"{text}{_LAST}\n", _END)
        for line in (printed or "").splitlines():
            if line.startswith("0x"):
                frames.append([])
            elif frames:
                frames[-1].append(_file_and_line(line))
        del frames[begin + len(some) :]
        frames += [[] for _ in range(begin + len(some) - len(frames))]
    return frames


def _file_and_line(text: str) -> tuple[str, int]:
    """Split ``dir/name.cu:31 (discriminator 2)`` into file and line; line 0 for ``?``."""
    file, _, line = text.partition(" (")[0].rpartition(":")
    return file, int(line) if re.fullmatch("[0-9]{1,9}", line) else 0


_LARGEST_SECTIONS = {".debug_line": 1 << 20, ".debug_info": 4 << 20}
"""The maximum bytes of each section, several times that of the course's largest kernels.

Parsing takes a hundred times as many bytes of memory.
"""


def _content(library: Path) -> bytes:
    with library.open("rb") as file:
        content = file.read(LARGEST_LIBRARY + 1)
    if len(content) > LARGEST_LIBRARY:
        raise ValueError("the library is too large to read columns")
    return content


class _DebugInfo:
    """The columns in a library's debug information."""

    def __init__(self, library: Path) -> None:
        from elftools.elf.elffile import ELFFile

        elf = ELFFile(io.BytesIO(_content(library)))
        for name, most in _LARGEST_SECTIONS.items():
            section = elf.get_section_by_name(name)
            if section is not None and section.data_size > most:
                raise ValueError(f"{name} is too large to read columns")
        dwarf = elf.get_dwarf_info()
        self._dwarf, self._units, self._ranges = dwarf, list(dwarf.iter_CUs()), dwarf.range_lists()
        self._with_code: list[tuple[Any, int, list[tuple[int, int]]]] = []
        self._lambdas: list[tuple[Any, int, list[tuple[int, int]]]] = []
        self._as_written: list[tuple[Any, int]] = []
        self._rows: list[tuple[int, int]] = []  # address and column, by address
        self._lines: list[tuple[int, int, str]] = []  # address, line (not 0) and file name, by address
        for unit in self._units:
            self._read_lines(unit)
        # If several rows describe one instruction, the last one counts: the sort is stable.
        self._rows.sort(key=lambda row: row[0])
        self._lines.sort(key=lambda row: row[0])

    def _read_lines(self, unit: Any) -> None:
        program = self._dwarf.line_program_for_CU(unit)
        if program is None:
            return
        first = 0 if program.header["version"] >= 5 else 1
        files = [os.path.basename(file.name.decode()) for file in program.header["file_entry"]]
        for address, file, line, column in line_table.rows(program):
            self._rows.append((address, column))
            if line and first <= file < len(files) + first:
                self._lines.append((address, line, files[file - first]))

    def _calls(self, address: int) -> list[tuple[int, int]]:
        """Return the depth and the column of each call that was inlined around an instruction."""
        found: list[tuple[int, int]] = []
        for functions in self._functions():
            for function, base, covered in functions:
                if _within(address, covered):
                    self._add_inlined(function, base, address, 0, found)
                    return sorted(found)
        return found

    def _functions(self) -> Iterator[list[tuple[Any, int, list[tuple[int, int]]]]]:
        """Yield two lists of functions that have machine code of their own.

        The second list has the lambdas inside inlined functions. It is rarely needed.
        """
        if not self._with_code:
            for unit in self._units:
                top = unit.get_top_DIE()
                low = top.attributes.get("DW_AT_low_pc")
                self._read_functions(top, low.value if low else 0, self._with_code)
        yield self._with_code
        while self._as_written:
            self._read_functions(*self._as_written.pop(), self._lambdas)
        yield self._lambdas

    def _read_functions(self, die: Any, base: int, into: list[tuple[Any, int, list[tuple[int, int]]]]) -> None:
        for child in die.iter_children():
            if "DW_AT_inline" in child.attributes:  # an inlined function: its code is at the places of its calls
                self._as_written.append((child, base))
            elif covered := _ranges_of(child, child.cu, self._ranges, base):
                into.append((child, base, covered))
            else:
                self._read_functions(child, base, into)

    def _add_inlined(self, die: Any, base: int, address: int, depth: int, found: list[tuple[int, int]]) -> None:
        for child in die.iter_children():
            covered = _ranges_of(child, child.cu, self._ranges, base)
            if covered and not _within(address, covered):
                continue
            inlined = bool(covered) and child.tag == "DW_TAG_inlined_subroutine"
            if inlined:
                column = child.attributes.get("DW_AT_call_column")
                found.append((depth + 1, column.value if column else 0))
            self._add_inlined(child, base, address, depth + inlined, found)

    def line_before(self, address: int) -> tuple[str, int]:
        """Return the file name and the line of the last instruction with a line, up to the address."""
        row = bisect.bisect_right(self._lines, address, key=lambda row: row[0]) - 1
        return (self._lines[row][2], self._lines[row][1]) if row >= 0 else ("", 0)

    def column(self, address: int, depth: int) -> int:
        """Return the column of an instruction, or of the call that was inlined ``depth`` levels above it."""
        if depth == 0:
            row = bisect.bisect_right(self._rows, address, key=lambda row: row[0]) - 1
            return self._rows[row][1] if row >= 0 else 0
        calls = self._calls(address)
        # Calls are sorted from the outermost to the innermost. Frame 0 is the innermost function, so the innermost call
        # is in frame 1.
        return calls[len(calls) - depth][1] if depth <= len(calls) else 0


def _within(address: int, ranges: Sequence[tuple[int, int]]) -> bool:
    return any(low <= address < high for low, high in ranges)


def _ranges_of(die: Any, unit: Any, ranges: Any, base: int) -> list[tuple[int, int]]:
    attributes = die.attributes
    if "DW_AT_low_pc" in attributes and "DW_AT_high_pc" in attributes:
        low = attributes["DW_AT_low_pc"].value
        high = attributes["DW_AT_high_pc"]
        return [(low, high.value if high.form == "DW_FORM_addr" else low + high.value)]
    if "DW_AT_ranges" not in attributes or ranges is None:
        return []
    found = []
    for entry in ranges.get_range_list_at_offset(attributes["DW_AT_ranges"].value, unit):
        if hasattr(entry, "base_address"):
            base = entry.base_address
        elif getattr(entry, "is_absolute", False):
            found.append((entry.begin_offset, entry.end_offset))
        else:
            found.append((base + entry.begin_offset, base + entry.end_offset))
    return found


@functools.lru_cache(maxsize=16)
def _debug_info(library: Path) -> _DebugInfo:
    return _DebugInfo(library)
