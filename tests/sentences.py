"""Draw random sentences of the repository, to judge whether a reader understands them.

``python -m tests.sentences --seed 1 --count 60`` prints docstrings, comments, messages and lesson paragraphs with their
places. A reader without context should understand each at first reading.
"""

from __future__ import annotations

import argparse
import ast
import io
import itertools
import json
import random
import re
import subprocess
import textwrap
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
KINDS = ("docstring", "comment", "message", "paragraph")
_DEFINITIONS = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
_BODIES = (ast.Module, ast.ClassDef)
_MARKERS = ("namespace", 'extern "C"', "finding: ", "clang-format ")
"""Beginnings of comments that tools read or write, not readers: clang-format's, and marks that a test reads."""
_CODE = re.compile(r"[;{]$|\b__\w+__\b|url\(|^\W|^--")
"""Matches strings that are code or parts of commands, not messages."""
_CXX_COMMENT = re.compile(r"(?:^[ \t]*//[^\n]*\n)+|//[^\n]*", re.MULTILINE)


def sentences(path: Path) -> Iterator[tuple[str, int, str]]:
    """Yield the kind, the line and the text of everything in a file that a person reads."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        yield from _python(text)
    elif path.suffix == ".ipynb":
        yield from _notebook(text)
    elif path.suffix in (".cu", ".cuh", ".h", ".cpp"):
        lines = text.splitlines()
        for found in _CXX_COMMENT.finditer(text):
            words = " ".join(line.strip().lstrip("/").strip() for line in found[0].splitlines())
            if not words.startswith(_MARKERS):
                line = text.count("\n", 0, found.start())
                yield "comment", line + 1, _with_code(lines[line], words) if words in lines[line] else words
    elif path.suffix == ".md":
        for number, paragraph in _paragraphs(text):
            yield "paragraph", number, paragraph


def _python(text: str) -> Iterator[tuple[str, int, str]]:
    """Yield docstrings, comments and messages; an f-string is one message, a trailing comment stands after its code."""
    tree = ast.parse(text)
    lines = text.splitlines()
    seen = set()
    for node in ast.walk(tree):
        if isinstance(node, _DEFINITIONS) and (docstring := ast.get_docstring(node)):
            seen.add(id(node.body[0].value))  # type: ignore[attr-defined]
            yield "docstring", node.body[0].lineno, " ".join(docstring.split())
        for before, after in itertools.pairwise(getattr(node, "body", None) or []) if isinstance(node, _BODIES) else ():
            if isinstance(before, ast.Assign | ast.AnnAssign) and isinstance(after, ast.Expr) and _is_text(after.value):
                seen.add(id(after.value))
                words = " ".join(after.value.value.split())  # type: ignore[attr-defined]
                yield "docstring", after.lineno, f"{textwrap.shorten(ast.unparse(before), 100)}: {words}"
        if isinstance(node, ast.JoinedStr):
            seen.update(id(part) for part in node.values)
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            message = "".join(
                str(part.value) if isinstance(part, ast.Constant) else f"{{{ast.unparse(part.value)}}}"
                for part in node.values
                if isinstance(part, ast.Constant | ast.FormattedValue)
            )
        elif _is_text(node) and id(node) not in seen:
            message = node.value  # type: ignore[attr-defined]
        else:
            continue
        if message.count(" ") >= 4 and "\n" not in message.strip() and not _CODE.search(message):
            yield "message", node.lineno, message  # type: ignore[attr-defined]
    for number, words in _comments(text):
        if words.count(" ") >= 3:
            yield "comment", number, _with_code(lines[number - 1], words) if words in lines[number - 1] else words


def _comments(text: str) -> Iterator[tuple[int, str]]:
    """Yield each comment with its first line. Consecutive lines that are only comments form one comment."""
    alone: list[tuple[int, int, str]] = []
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type != tokenize.COMMENT:
            continue
        (line, column), words = token.start, token.string.lstrip("# ")
        if alone and (line - 1, column) != alone[-1][:2]:
            yield alone[0][0], " ".join(words for _, _, words in alone)
            alone = []
        if token.line.strip().startswith("#"):
            alone.append((line, column, words))
        else:
            yield line, words
    if alone:
        yield alone[0][0], " ".join(words for _, _, words in alone)


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _with_code(line: str, comment: str) -> str:
    """Return a comment, after the code of its line where it has some: readers see both."""
    code = line[: line.rindex(comment)].rstrip().rstrip("/#").strip()
    return f"{code}  <- {comment}" if code else comment


def _notebook(text: str) -> Iterator[tuple[str, int, str]]:
    for number, cell in enumerate(json.loads(text)["cells"]):
        if cell["cell_type"] == "markdown":
            for _, paragraph in _paragraphs("".join(cell["source"])):
                yield "paragraph", number, paragraph


def _paragraphs(text: str) -> Iterator[tuple[int, str]]:
    """Yield the line and the text of each paragraph that is prose: no code, table, heading or formula."""
    text = re.sub(r"```.*?```", lambda found: "\n" * found[0].count("\n"), text, flags=re.DOTALL)
    line = 1
    for block in text.split("\n\n"):
        if block.count(" ") >= 6 and not block.lstrip("\n").startswith(("|", "#", "$$", "<", "!", "    ")):
            yield line, " ".join(block.split())
        line += block.count("\n") + 2


def every() -> Iterator[tuple[str, str, str]]:
    """Yield the kind, the place and the text of every sentence in the tracked files."""
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in tracked.splitlines():
        if Path(name).suffix in (".py", ".ipynb", ".cu", ".cuh", ".h", ".cpp", ".md") and (ROOT / name).is_file():
            for kind, line, text in sentences(ROOT / name):
                yield kind, f"{name}:{line}", text


def main() -> None:
    """Print the drawn sentences, the same number of each kind."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=60)
    options = parser.parse_args()
    drawing = random.Random(options.seed)
    found = sorted(every())
    for kind in KINDS:
        of_kind = [(place, text) for each, place, text in found if each == kind]
        for place, text in drawing.sample(of_kind, min(len(of_kind), options.count // len(KINDS))):
            print(f"{kind:9} {place}\n    {text}\n")


if __name__ == "__main__":
    main()
