"""Stores the digests of source files in the records of figures that depend on them.

``lessons/records.toml`` lists each recorded file (a record) with the command that writes it, and its sources: files,
and nvcc's flags if nvcc builds kernels with ``NVCC_FLAGS``. ``write_record`` stores a digest of each file and the text
of the flags in the record. ``tests/records.py`` compares them with the present files and flags.
"""

from __future__ import annotations

import ast
import hashlib
import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from grader.execution.build.build import NVCC_FLAGS
from grader.frontend.tokens import Source
from grader.setup.errors import GraderError

TABLE = "lessons/records.toml"
FLAGS = "nvcc flags"
"""The name of nvcc's flags among the sources of a record."""
_DIGITS = 12
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)


@dataclass(frozen=True)
class Recorded:
    """A row of ``records.toml``: a record's path relative to the course, its command, and patterns of its sources."""

    file: str
    command: str
    sources: tuple[str, ...]


def recorded_files(root: Path) -> list[Recorded]:
    """Return the table of recorded files."""
    rows = tomllib.loads((root / TABLE).read_text(encoding="utf-8"))["record"]
    return [Recorded(row["file"], row["command"], tuple(row["sources"])) for row in rows]


def digest(file: Path, lessons: Path) -> str:
    """Return a digest of a source's code. Comments, docstrings and layout have no influence on it.

    The digest of a CUDA file includes the course's headers in ``lessons`` that it includes.
    """
    text = file.read_text(encoding="utf-8")
    parts = [_python(text)] if file.suffix == ".py" else list(_cuda(text, lessons, set()))
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:_DIGITS]


def digests(root: Path, patterns: tuple[str, ...], known: dict[Path, str] | None = None) -> dict[str, str]:
    """Return the digest of each file that matches a pattern, by its path relative to ``root``.

    If ``FLAGS`` is among the patterns, also return the text of nvcc's flags, by that name. ``known`` is a cache of
    digests that the caller may pass to several calls.
    """
    known = {} if known is None else known
    found = sorted({path for pattern in patterns for path in root.glob(pattern)})
    for path in found:
        if path not in known:
            known[path] = digest(path, root / "lessons")
    flags = {FLAGS: NVCC_FLAGS} if FLAGS in patterns else {}
    return flags | {path.relative_to(root).as_posix(): known[path] for path in found}


def write_record(path: Path, content: Mapping[str, Any], root: Path, renewed: tuple[str, ...] | None = None) -> None:
    """Write a record as JSON, with the digests of its sources in the member ``sources``.

    If only some figures were measured again, ``renewed`` are the sources of these figures. The other sources keep the
    digests of the old record, unless nvcc's flags changed: then their digests are empty, because the kept figures are
    those of other flags. A file that is not in ``records.toml``, such as one that the user named, gets no digests.
    """
    row = next((row for row in recorded_files(root) if (root / row.file) == path.resolve()), None)
    kept = dict(content)
    if row is not None:
        now = digests(root, row.sources)
        if renewed is not None and path.exists():
            before = json.loads(path.read_text(encoding="utf-8")).get("sources", {})
            if before.get(FLAGS) != now.get(FLAGS):
                before = {}
            renewed = (*renewed, FLAGS)
            now = {name: value if name in renewed else before.get(name, "") for name, value in now.items()}
        kept["sources"] = now
    path.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")


def _cuda(text: str, lessons: Path, seen: set[str]) -> Iterator[str]:
    """Yield the tokens and preprocessor lines of a CUDA file, and of the course's headers that it includes."""
    source = Source(text)
    yield " ".join(token.text for token in source.tokens)
    for directive in source.directives:
        yield f"#{directive.name} {' '.join(_COMMENT.sub(' ', directive.text).split())}"
    for include in source.includes:
        header = lessons / include.name
        if include.name not in seen and include.name.endswith(".cuh") and header.is_file():
            seen.add(include.name)
            yield from _cuda(header.read_text(encoding="utf-8"), lessons, seen)


def _python(text: str) -> str:
    """Return a Python module's syntax tree as text, without docstrings, calls of ``print`` and help texts."""
    try:
        tree = ast.parse(text)
    except SyntaxError as error:
        raise GraderError(f"cannot read a source of a record: {error}") from error
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            node.keywords = [keyword for keyword in node.keywords if keyword.arg not in ("help", "description")]
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [part for part in body if not _only_text(part)]  # type: ignore[attr-defined]
    return _dump(tree)


def _dump(node: object) -> str:
    """Return a syntax tree as text. Omit empty fields, so that the text is the same in every version of Python."""
    if isinstance(node, ast.AST):
        fields = [(name, value) for name, value in ast.iter_fields(node) if value not in (None, [])]
        return f"{type(node).__name__}({', '.join(f'{name}={_dump(value)}' for name, value in fields)})"
    if isinstance(node, list):
        return f"[{', '.join(map(_dump, node))}]"
    return repr(node)


def _only_text(statement: ast.stmt) -> bool:
    """Return whether a statement is a docstring or a call of ``print``."""
    if not isinstance(statement, ast.Expr):
        return False
    value = statement.value
    if isinstance(value, ast.Call):
        return isinstance(value.func, ast.Name) and value.func.id == "print"
    return isinstance(value, ast.Constant) and isinstance(value.value, str)
