"""Repairs the programs of a .venv that was moved: their first lines contain the path of its Python.

pip writes ``#!/course/.venv/bin/python`` or, because the kernel splits that line at spaces and limits its length, three
lines that are a command for the shell and a string for Python.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
from pathlib import Path

_SHELL = re.compile(rb"""#!/bin/sh\n'''exec' ([^\n]+) "\$0" "\$@"\n' '''\n""")
_PLAIN = re.compile(rb"#!([^\n]+)\n")


def relocate_programs(programs: Path, former: Path) -> None:
    """Let the programs in a folder run its Python if they run that of the former folder."""
    for program in sorted(programs.iterdir()):
        if program.is_symlink() or not program.is_file():
            continue
        text = program.read_bytes()
        first = _SHELL.match(text) or _PLAIN.match(text)
        if first and _runs(os.fsdecode(first[1]), former):
            _replace(program, _first_lines(programs / "python") + text[first.end() :])


def _runs(command: str, programs: Path) -> bool:
    """Return whether the command of a first line runs the Python of a folder."""
    try:
        unquoted = shlex.split(command)
    except ValueError:
        unquoted = []
    return any(text.startswith(f"{programs}/python") for text in (command, *unquoted))


def _first_lines(python: Path) -> bytes:
    """Return first lines that work with every path."""
    return b"#!/bin/sh\n'''exec' " + os.fsencode(shlex.quote(str(python))) + b' "$0" "$@"\n' + b"' '''\n"


def _replace(program: Path, text: bytes) -> None:
    """Replace a program atomically, so that an interruption leaves the old one or the new one."""
    beside = program.with_name(program.name + ".new")
    beside.write_bytes(text)
    shutil.copymode(program, beside)
    beside.replace(program)
