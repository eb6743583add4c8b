"""Runs notebooks from top to bottom, each in its own kernel, and stores their outputs in the file.

    python -m grader.report.notebook.execute lessons/*/lesson.ipynb

A notebook with a failing cell is not changed. The message names the cell, and the exit code is 1.
"""

from __future__ import annotations

import argparse
import base64
import io
import os
import re
import sys
import time
from pathlib import Path

import nbformat

import grader
from grader.report.notebook.canonical import canonical_text, canonicalise
from grader.setup.errors import GraderError

COLOR = re.compile(r"\x1b\[[0-9;]*m")
# The time limit of one cell. A whole lesson should take less than 30 s.
CELL_SECONDS = 120


def execute(path: Path, cell_seconds: int = CELL_SECONDS) -> float:
    """Run the notebook at ``path`` in place and return how many seconds that took."""
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

    notebook = nbformat.reads(canonical_text(path), as_version=4)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    client = NotebookClient(
        notebook,
        timeout=cell_seconds,
        kernel_name="python3",
        extra_arguments=["--log-level=ERROR"],
        record_timing=False,
        resources={"metadata": {"path": str(path.resolve().parent)}},
    )
    start = time.perf_counter()
    try:
        client.execute(env=kernel_environment())
    except CellExecutionError as error:
        raise GraderError(f"{path}: {_failed_cell(notebook)} fails\n{COLOR.sub('', str(error)).strip()}") from None
    except CellTimeoutError:
        raise GraderError(f"{path}: {_failed_cell(notebook)} takes longer than {cell_seconds} s") from None
    except DeadKernelError:
        raise GraderError(f"{path}: {_failed_cell(notebook)} killed the notebook's Python") from None
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            picture = output.get("data", {}).get("image/png")
            if picture:
                output.data["image/png"] = compact_picture(picture)
    path.write_text(nbformat.writes(canonicalise(notebook)) + "\n", encoding="utf-8")
    return time.perf_counter() - start


def compact_picture(png: str) -> str:
    """Reduce a base64 PNG to 256 colors, which suffice for figures: it shrinks to a third."""
    from PIL import Image

    own = Image.open(io.BytesIO(base64.b64decode(png))).convert("RGB")
    compact = io.BytesIO()
    own.quantize(256, kmeans=1, dither=Image.Dither.NONE).save(compact, "PNG", optimize=True)
    return min(base64.b64encode(compact.getvalue()).decode(), png, key=len)


def kernel_environment() -> dict[str, str]:
    """Return the environment of a lesson's Python: it imports this grader and ignores the terminal's settings."""
    home = str(Path(grader.__file__).resolve().parent.parent)
    path = os.pathsep.join([home, *filter(None, [os.environ.get("PYTHONPATH")])])
    fixed = {"PYTHONPATH": path, "PYTHONHASHSEED": "0", "COLUMNS": "100", "PYDEVD_DISABLE_FILE_VALIDATION": "1"}
    return {**os.environ, **fixed}


def _failed_cell(notebook: nbformat.NotebookNode) -> str:
    """Return the cell that was running: its number among the code cells and its first line."""
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    started = [number for number, cell in enumerate(code, 1) if cell.execution_count is not None or cell.outputs]
    number = started[-1] if started else 1
    # A cell gets its number when it ends, so the cell that hung or died follows the last numbered one.
    ended = [number for number, cell in enumerate(code, 1) if cell.execution_count is not None]
    if ended and ended[-1] == number and not any(out.output_type == "error" for out in code[number - 1].outputs):
        number = min(number + 1, len(code))
    return f"code cell {number} ({next(iter(code[number - 1].source.strip().splitlines()), '')!r})"


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m grader.report.notebook.execute", description="Execute notebooks in place."
    )
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE", help="notebooks (.ipynb)")
    parser.add_argument(
        "--timeout", type=int, default=CELL_SECONDS, metavar="S", help="time limit of a cell in seconds"
    )
    options = parser.parse_args(arguments)
    failed = 0
    for path in options.files:
        try:
            print(f"{path}: {execute(path, options.timeout):.1f} s", flush=True)
        except GraderError as error:
            failed += 1
            print(error, file=sys.stderr, flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
