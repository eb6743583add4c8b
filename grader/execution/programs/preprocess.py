"""Preprocesses a program's files with the C++ compiler, before the front end translates them.

The front end therefore sees only active code, with the program's macros expanded and its own headers inserted. Headers
of CUDA and of the system are not inserted, because their macros (``threadIdx``, ``assert``) must not be expanded yet:
the simulator's headers define them in another way. Each such header is replaced by a stand-in, a file of one line, from
which its ``#include`` is restored afterwards. Macros of these headers that ``#if`` may test, such as
``CUDART_VERSION``, are defined if they are numbers.

Only ``grader run`` and ``grader nvcc`` preprocess. An exercise is one file without headers of its own; the front end
reads it directly.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from pathlib import Path

from grader.execution.programs.files import Unit, read_text
from grader.frontend.course_headers import FOLDER, line_directive
from grader.frontend.toolchain.cache import BuildCache, digest
from grader.frontend.toolchain.compilers import Compiler
from grader.frontend.toolchain.process import Command, Finished, RunCommand, run_command
from grader.setup.errors import GraderError
from grader.simulator import library

_STAND_INS = "headers"
_MACROS = "macros.h"
AHEAD = ("<cuda_runtime.h>", "<climits>")
"""The headers that nvcc includes before each file."""
_MARK = "#pragma grader_include "
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include(?:_next)?[ \t]*(<[^>\n]+>|"[^"\n]+"|\w+)', re.MULTILINE)
_NAMED = re.compile(r'^(?:-D|[ \t]*#[ \t]*define[ \t]+)(\w+)(?:=|[ \t]+)(<[^>\n]+>|"[^"\n]+")', re.MULTILINE)
_HAS_INCLUDE = re.compile(r'__has_include[ \t]*\([ \t]*(<[^>\n]+>|"[^"\n]+")')
_LINE = re.compile(r'# (\d+) "((?:[^"\\]|\\.)*)"')
_DEFINITION = re.compile(r"#define (\w+)(\([^)]*\))? ?(.*)")
_GUARD = re.compile(r"^#define [A-Z]+_(?:API_)?H_$", re.MULTILINE)
"""NVIDIA's include guards. Programs test with them whether a header was included, so a stand-in defines them."""
_IN_NUMBERS = re.compile(r"(?P<name>[A-Za-z_]\w*)|\.?[0-9](?:[eEpP][+-]|[\w.'])*|[-+*/%<>=!&|^~?:(),#\s]+|'[^']*'")
"""A pattern for one token of a macro's value, if the value is a number or an expression that ``#if`` can evaluate."""
_OPERATORS = {"defined", "and", "or", "not", "true", "false"}
_PREDEFINE = ("-std=", "-fopenmp", "-pthread")
"""Flags that define macros of the compiler, such as ``_OPENMP``."""
_PADDING = 200
"""The largest gap, in lines, that is filled with empty lines. Inactive code leaves gaps."""

PASSED_ON = re.compile(r"#(?:define (?:_\w*|NDEBUG)(?: [\w.+-]*)?|undef \w+) *")
"""Definitions of macros that system headers may test. Others are dropped: the macros are already expanded."""


@dataclass(frozen=True)
class Preprocessed:
    """A preprocessed file. ``text`` is its active code, with ``#line`` directives and restored ``#include`` lines."""

    text: str
    places: tuple[tuple[str, int], ...] = field(repr=False)
    """The file and line of each line of the text."""
    warnings: str = ""

    @property
    def files(self) -> set[str]:
        """The paths of the program's own files whose lines are in the text."""
        return {file for file, _ in self.places}


class Refused(GraderError):
    """An error that the preprocessor reported."""


def preprocess(
    unit: Unit, compiler: Compiler, flags: Sequence[str], folder: Path, cache: BuildCache, run: RunCommand = run_command
) -> Preprocessed:
    """Preprocess a file. ``folder`` is for temporary files."""
    stand_ins = folder / _STAND_INS
    stand_ins.mkdir(exist_ok=True)
    ahead = [_macros_of(header, (), compiler, flags, cache) for header in AHEAD]
    given = {line for macros in ahead for line in macros.read_text(encoding="utf-8").splitlines()}
    for header in _headers(unit)[0]:
        _stand_in(stand_ins, header, given, lambda name: _macros_of(name, unit.defines, compiler, flags, cache))
    options = [f"-I{path}" for path in (*unit.include_dirs, FOLDER.parent, stand_ins)]
    predefine = [flag for flag in flags if flag.startswith(_PREDEFINE)]
    argv = (*compiler.command, "-x", "c++", "-E", "-dD", *predefine, "-nostdinc", "-w", *unit.defines, *options)
    argv += (*(f"-imacros{macros}" for macros in ahead), "-o", "active.ii", str(unit.file))
    work = folder / "work"
    work.mkdir()
    reads = (*unit.include_dirs, unit.file.parent, FOLDER.parent, *(macros.parent for macros in ahead), stand_ins)
    done = run(Command(argv, work, reads))
    if done.returncode != 0:
        raise Refused(_without(done, stand_ins))
    text = (work / "active.ii").read_text(encoding="utf-8", errors="replace")
    return _read(text, stand_ins, {str(macros) for macros in ahead}, done.output)


def _without(done: Finished, stand_ins: Path) -> str:
    return done.output.replace(f"{stand_ins}/", "")


def own_files(unit: Unit) -> list[Path]:
    """Return the file and all headers of the program that it includes, directly or not, even in inactive code."""
    return sorted(_headers(unit)[1])


def _headers(unit: Unit) -> tuple[list[str], set[Path]]:
    """Return the included headers of the system or of CUDA, and the program's own files.

    The name of a header of the system or of CUDA keeps its brackets or quotes: ``<cuda_fp16.h>``.
    """
    foreign: dict[str, None] = {}
    asked: set[str] = set()
    named = _NAMED.findall("\n".join(unit.defines))  # macros that name a header, for #include NAME
    included: list[tuple[str, Path]] = []
    waiting, seen = [unit.file], set()
    while waiting:
        file = waiting.pop()
        if file not in seen:
            seen.add(file)
            text = read_text(file)
            asked |= set(_HAS_INCLUDE.findall(text))
            named += _NAMED.findall(text)
            included += [(header, file) for header in _INCLUDE.findall(text)]
        if waiting:
            continue
        for header, place in included:
            for one in [header] if header[0] in '<"' else [value for name, value in named if name == header]:
                own = _own(one, place, unit)
                if own is None:
                    foreign[one] = None
                elif own not in seen:
                    waiting.append(own)
    # A stand-in file for a header makes __has_include true. If the program tests a header with __has_include, return
    # the header only if it exists.
    return [header for header in foreign if header not in asked or _exists(header[1:-1])], seen


def _exists(name: str) -> bool:
    places = (*library.INCLUDE_DIRS, Path("/usr/include"), *Path("/usr/include/c++").glob("*"))
    return any((place / name).is_file() for place in places)


def _own(header: str, file: Path, unit: Unit) -> Path | None:
    name = header[1:-1]
    folders = [*([file.parent] if header[0] == '"' else []), *unit.include_dirs, FOLDER.parent]
    return next((found for folder in folders if (found := folder / name).is_file()), None)


def _stand_in(folder: Path, header: str, given: set[str], macros_of: Callable[[str], Path]) -> None:
    name = header[1:-1]
    path = Path(name)
    if path.is_absolute() or ".." in path.parts or len(name) > 200:
        return  # make no stand-in, so that the preprocessor reports the missing header
    target = folder / path
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        ours = library.header_path(name)
        guards = _GUARD.findall(ours.read_text(encoding="utf-8")) if ours else []
        macros = macros_of(header).read_text(encoding="utf-8").splitlines()
        lines = [_MARK + header, *guards, *(line for line in macros if line not in given)]
        target.write_text("\n".join([*lines, ""]), encoding="utf-8")
    except OSError:  # for example a header and a folder with the same name
        return


def _macros_of(
    header: str, defines: Sequence[str], compiler: Compiler, flags: Sequence[str], cache: BuildCache
) -> Path:
    """Return a file that defines the macros of a header; it is empty if the compiler cannot read the header."""
    options = [flag for flag in flags if flag.startswith("-std=")]
    options += [define for define in defines if define.startswith(("-D", "-U"))]
    found = str(_exists(header[1:-1]))
    key = digest(
        ["macros", Path(__file__).read_bytes(), compiler.identity, *options, library.headers_digest(), header, found]
    )

    def collect(folder: Path) -> None:
        (folder / "all.cpp").write_text(f"#include {header}\n", encoding="utf-8")
        (folder / "none.cpp").write_text("\n", encoding="utf-8")
        lists = []
        for name, where in (("none", ["-nostdinc"]), ("all", library.include_flags())):
            argv = (*compiler.command, "-E", "-dM", *options, *where, f"{name}.cpp", "-o", name)
            if run_command(Command(argv, folder)).returncode == 0:
                lists.append((folder / name).read_text(encoding="utf-8", errors="replace").splitlines())
        macros = _testable(lists[0], lists[1]) if len(lists) == 2 else []
        (folder / _MACROS).write_text("\n".join([*macros, ""]), encoding="utf-8")

    return cache.get(key, collect, f"the macros of {header}")[0] / _MACROS


def _testable(predefined: Sequence[str], lines: Sequence[str]) -> list[str]:
    """Return definitions of macros for ``#if`` and ``#ifdef``.

    A macro whose value is a number keeps this value. Any other macro expands to its own name, so that uses of it remain
    unchanged.
    """
    numbers = {match[1]: line for line in lines if (match := _DEFINITION.fullmatch(line)) and match[3]}
    names = {name: _names_in(line) for name, line in numbers.items()}
    while refused := [name for name in numbers if (used := names[name]) is None or not used <= numbers.keys()]:
        for name in refused:
            del numbers[name]
    known = set(predefined)
    new = [(match[1], line) for line in lines if line not in known and (match := _DEFINITION.fullmatch(line))]
    return [numbers.get(name, f"#define {name} {name}") for name, line in new]


def _names_in(line: str) -> set[str] | None:
    """Return the names in a macro's value, without its parameters; None if the value is not a number or expression."""
    match = _DEFINITION.fullmatch(line)
    assert match is not None
    parameters = set(re.findall(r"\w+", match[2] or "")) | _OPERATORS
    at, names = 0, set()
    while at < len(match[3]):
        token = _IN_NUMBERS.match(match[3], at)
        if token is None:
            return None
        pasted = match[3][:at].rstrip().endswith("##") or match[3][token.end() :].lstrip().startswith("##")
        if token["name"] and token["name"] not in parameters and not pasted:
            names.add(token["name"])
        at = token.end()
    return names if re.search(r"\w", match[3]) else None


def _read(text: str, stand_ins: Path, given: AbstractSet[str], warnings: str) -> Preprocessed:
    lines: list[str] = []
    places: list[tuple[str, int]] = []
    at: tuple[str, int] = ("", 0)  # the file and line that the compiler will assume for the next line

    def put(file: str, number: int, line: str) -> None:
        nonlocal at
        if (file, number) != at:
            gap = number - at[1] if file == at[0] else -1
            if 0 < gap <= _PADDING:
                lines.extend([""] * gap)
                places.extend((file, k) for k in range(at[1], number))
            else:
                lines.append(line_directive(number, file).rstrip("\n"))
                places.append((file, number))
        lines.append(line)
        places.append((file, number))
        at = (file, number + 1)

    for file, number, line in _own_lines(text, stand_ins, given):
        put(file, number, line)
    return Preprocessed("\n".join(lines) + "\n", tuple(places), warnings)


def _goes_on(line: str) -> bool:
    return not line.startswith(("#define ", "#undef ")) or PASSED_ON.fullmatch(line) is not None


def _own_lines(text: str, stand_ins: Path, given: AbstractSet[str]) -> Iterator[tuple[str, int, str]]:
    """Yield the file, number and text of each line of the program's own files, and an ``#include`` for a stand-in."""
    inside = f"{stand_ins}/"
    file, number, header = "", 0, ""
    for line in text.split("\n"):
        if match := _LINE.match(line):
            file, number = match[2].replace('\\"', '"').replace("\\\\", "\\"), int(match[1])
            if header and not file.startswith(inside):
                yield file, max(1, number - 1), f"#include {header}"
                header = ""
            continue
        if file.startswith(inside):
            if line.startswith(_MARK):
                header = line.removeprefix(_MARK)
        elif file and not file.startswith("<") and file not in given and line.strip() and _goes_on(line):
            yield file, number, line
        number += 1
