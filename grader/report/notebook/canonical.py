"""One canonical form of notebook files, so that a diff shows only what an author changed.

    python -m grader.report.notebook.canonical lessons/*/lesson.ipynb           rewrites the files that differ
    python -m grader.report.notebook.canonical --check lessons/*/lesson.ipynb   lists them, and exits 1 if there are any

The rules:

- JSON as Jupyter itself saves it: sorted keys, one space of indentation, UTF-8, one newline at the end;
- one kernelspec (``python3``), the language by name; no version of anything;
- every cell has an id, which is kept if it is valid and unique, and derived from the cell's text otherwise;
- of a cell's metadata, only the tags stay, sorted. A cell that shows a picture or asks for a prediction has the tag
  ``hide-input``, which hides the drawing code and the answer. Jupyter Book uses the tag. For JupyterLab, such a cell
  also has ``source_hidden`` in its metadata;
- the i-th executed code cell has number i; outputs have that number, no timings, no widget state;
- neighboring pieces of one stream are one output; memory addresses are written ``0x...``;
- pictures lose the text chunks in which the drawing library writes its version.
"""

from __future__ import annotations

import argparse
import base64
import binascii
import hashlib
import re
import struct
import sys
from pathlib import Path
from typing import Any

import nbformat

from grader.setup.errors import GraderError

FOLD = "hide-input"
KERNELSPEC = {"display_name": "Python 3", "language": "python", "name": "python3"}
LANGUAGE = {"name": "python"}
VALID_ID = re.compile(r"^[a-zA-Z0-9_-]{1,64}$")
ADDRESS = re.compile(r"\b0x[0-9a-fA-F]{9,16}\b")  # at least 9 digits: a mask of 32 lanes has 8 and is no address
PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"
# PNG chunks that hold metadata, such as the program and the time.
PNG_NOISE = {b"tEXt", b"iTXt", b"zTXt", b"tIME", b"eXIf"}


def canonical_text(path: Path) -> str:
    """Return the canonical form of the notebook file at ``path``."""
    try:
        notebook = nbformat.reads(path.read_text(encoding="utf-8"), as_version=4)
    except FileNotFoundError:
        raise GraderError(f"no such notebook: {path}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise GraderError(f"cannot read {path}: {error}") from None
    except (nbformat.ValidationError, ValueError, TypeError, LookupError, AttributeError) as error:
        raise GraderError(f"{path} is not a notebook: {first_line(error)}") from None
    canonicalise(notebook)
    try:
        nbformat.validate(notebook)
    except nbformat.ValidationError as error:
        raise GraderError(f"{path} is not a valid notebook: {first_line(error)}") from None
    return nbformat.writes(notebook) + "\n"


def canonicalise(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """Put a notebook in canonical form, in place."""
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    notebook.metadata = nbformat.from_dict({"kernelspec": KERNELSPEC, "language_info": LANGUAGE})
    seen: set[str] = set()
    code_cells = 0
    for cell in notebook.cells:
        cell.source = cell.source.replace("\r\n", "\n").rstrip("\n")  # Unix line ends, no blank lines at the end
        cell.metadata = _cell_metadata(cell)
        cell.id = _cell_id(cell, seen)
        if not cell.get("attachments"):
            cell.pop("attachments", None)
        if cell.cell_type == "code":
            code_cells += 1
            ran = cell.get("execution_count") is not None or bool(cell.get("outputs"))
            cell.execution_count = code_cells if ran else None
            cell.outputs = _outputs(cell.get("outputs", []), cell.execution_count)
    return notebook


def _cell_metadata(cell: Any) -> nbformat.NotebookNode:
    tags = set(cell.metadata.get("tags", []))
    shown = [output.get("data", {}) for output in cell.get("outputs", [])]
    if any("image/png" in data or data.get("text/html", "").startswith('<iframe title="Predict: ') for data in shown):
        tags.add(FOLD)
    kept: dict[str, Any] = {"tags": sorted(tags)} if tags else {}
    if FOLD in tags:
        kept["jupyter"] = {"source_hidden": True}
    return nbformat.from_dict(kept)


def _cell_id(cell: nbformat.NotebookNode, seen: set[str]) -> str:
    """Return the cell's id if it is valid, else an id derived from its text, so that two runs agree."""
    name = cell.get("id", "")
    if not isinstance(name, str) or not VALID_ID.match(name) or name in seen:
        base = hashlib.sha256(f"{cell.cell_type}\n{cell.source}".encode()).hexdigest()[:8]
        name, copies = base, 1
        while name in seen:
            copies += 1
            name = f"{base}-{copies}"
    seen.add(name)
    return name


def _outputs(outputs: list[Any], execution_count: int | None) -> list[nbformat.NotebookNode]:
    """Return outputs without the parts that change from run to run."""
    result: list[nbformat.NotebookNode] = []
    for output in outputs:
        output = nbformat.from_dict(dict(output))
        if output.output_type == "stream":
            if result and result[-1].output_type == "stream" and result[-1].name == output.name:
                result[-1].text += output.text
                continue
        elif output.output_type in ("execute_result", "display_data"):
            output.metadata = nbformat.from_dict({})
            output.pop("transient", None)
            output.data = nbformat.from_dict({mime: _data(mime, value) for mime, value in output.data.items()})
            if output.output_type == "execute_result":
                output.execution_count = execution_count
        result.append(output)
    for output in result:
        if output.output_type == "stream":
            output.text = ADDRESS.sub("0x...", output.text)
    return result


def _data(mime: str, value: Any) -> Any:
    if mime == "image/png":
        return _png_without_noise(value)
    return ADDRESS.sub("0x...", value) if mime.startswith("text/") else value


def _png_without_noise(encoded: str) -> str:
    """Return a PNG's base64 without the chunks in PNG_NOISE; anything else unchanged."""
    try:
        image = base64.b64decode(encoded, validate=False)
    except binascii.Error:
        return encoded.strip()
    if not image.startswith(PNG_SIGNATURE):
        return encoded.strip()
    kept, position = [PNG_SIGNATURE], len(PNG_SIGNATURE)
    while position + 12 <= len(image):
        (length,) = struct.unpack(">I", image[position : position + 4])
        chunk = image[position : position + 12 + length]
        if chunk[4:8] not in PNG_NOISE:
            kept.append(chunk)
        position += 12 + length
    return base64.b64encode(b"".join(kept)).decode()


def first_line(error: Exception) -> str:
    return next(iter(str(error).strip().splitlines()), type(error).__name__)


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m grader.report.notebook.canonical", description="Convert notebook files to the canonical form."
    )
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE", help="notebooks (.ipynb)")
    parser.add_argument("--check", action="store_true", help="change nothing; exit 1 when a file is not canonical")
    options = parser.parse_args(arguments)
    different, broken = 0, 0
    for path in options.files:
        try:
            text = canonical_text(path)
        except GraderError as error:
            print(error, file=sys.stderr)
            broken += 1
            continue
        if text == path.read_text(encoding="utf-8"):
            continue
        different += 1
        if options.check:
            print(f"not canonical: {path}")
        else:
            path.write_text(text, encoding="utf-8")
            print(f"rewritten: {path}")
    if options.check and different:
        print("convert with: python -m grader.report.notebook.canonical FILE...")
    if broken:
        return 2
    return 1 if options.check and different else 0


if __name__ == "__main__":
    sys.exit(main())
