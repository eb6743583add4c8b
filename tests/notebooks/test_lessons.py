"""Every lesson runs without a GPU, and prints the verdicts and counts that are stored in its file.

nbval runs each notebook. Cells tagged ``nbval-check-output`` must print the stored output; others must only run.
"""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from nbval.plugin import metadata_tags

from grader.frontend.toolchain.compilers import find_cxx
from grader.report.notebook.execute import kernel_environment
from tests.notebooks.lessons import NAMES, NOTEBOOKS, ROOT, cells, texts

CELL_SECONDS = 600
LESSON_SECONDS = 1000
LOCAL_PATH = re.compile(r"(/(?:home|root|tmp|Users)/|/var/folders/|site-packages|\.venv/|[A-Z]:\\Users)")
MOST_BYTES = 2_000_000
KERNEL_FILE = re.compile(r'(?:"(day\d\d_\w+)" / )?"(\w+\.cu)"')

each_lesson = pytest.mark.parametrize("path", NOTEBOOKS, ids=NAMES)


@pytest.fixture
def warm_cache(path: Path) -> None:
    """Build the simulator, the runner and the kernels of a lesson, so that its cells find them in the cache.

    Solutions are built as for grading, because other tests need the same libraries.
    """
    from grader.execution.build.build import compile_kernel
    from grader.execution.runner.program import build_runner
    from grader.setup.errors import GraderError

    build_runner("cpu")
    for kernel in (*sorted(path.parent.glob("*.cu")), *solutions_of(path)):
        with contextlib.suppress(GraderError):  # a lesson may show a kernel that does not compile
            compile_kernel(kernel, "cpu", checks=True)


def solutions_of(path: Path) -> list[Path]:
    """Return the solutions that a lesson or a module in its folder names.

    Solutions of the same day may be named without the day.
    """
    sources = ["".join(cell["source"]) for cell in cells(path)]
    sources += [module.read_text(encoding="utf-8") for module in path.parent.glob("*.py")]
    named = sorted({found for source in sources for found in KERNEL_FILE.findall(source)})
    files = [ROOT / "solutions" / (day or path.parent.name) / name for day, name in named]
    return [file for file in files if file.is_file()]


def without_comparisons(path: Path, folder: Path) -> Path:
    """Return a copy of a lesson without any compared output."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    for cell in notebook["cells"]:
        tags = cell["metadata"].get("tags", [])
        cell["metadata"]["tags"] = [tag for tag in tags if tag != "nbval-check-output"]
    copy = folder / path.name
    copy.write_text(json.dumps(notebook), encoding="utf-8")
    return copy


@each_lesson
def test_lesson_runs(path: Path, warm_cache: None, tmp_path: Path) -> None:
    if find_cxx().family != "gcc":
        # The thread and column of a finding depend on the compiler, and stored outputs come from g++. With another
        # compiler, run the cells without comparing outputs.
        path = without_comparisons(path, tmp_path)
    environment = {**kernel_environment(), "CUDA_VISIBLE_DEVICES": "", "PYTEST_ADDOPTS": ""}
    command = [
        sys.executable,
        "-m",
        "pytest",
        "--nbval-lax",
        "--nbval-current-env",
        f"--nbval-sanitize-with={ROOT / 'tests' / 'notebooks' / 'sanitize.cfg'}",
        f"--nbval-cell-timeout={CELL_SECONDS}",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:xdist",
        "-p",
        "no:hypothesispytest",  # unused, and its import takes a second
        "-p",
        "tests.no_grammars",
        "-q",
        "--color=no",
        "--no-header",
        str(path),
    ]
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=LESSON_SECONDS, check=False
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]


@each_lesson
def test_lesson_was_run_completely(path: Path) -> None:
    for number, cell in enumerate(cells(path), 1):
        if "".join(cell["source"]).strip():
            assert cell["execution_count"] == number, f"code cell {number} was not run: make notebooks"


@each_lesson
def test_outputs_contain_no_errors_and_no_paths_of_a_machine(path: Path) -> None:
    for number, cell in enumerate(cells(path), 1):
        for output in cell["outputs"]:
            assert output["output_type"] != "error", f"code cell {number} shows an exception: {output.get('ename')}"
            said = "".join(texts(output))
            assert output.get("name") != "stderr", f"code cell {number} writes to stderr: {said[:300]}"
            local = LOCAL_PATH.search(said)
            assert not local and str(ROOT) not in said, f"code cell {number} shows a local path: {said[:300]}"


@each_lesson
def test_some_outputs_are_compared(path: Path) -> None:
    compared = [cell for cell in cells(path) if "nbval-check-output" in cell["metadata"].get("tags", [])]
    assert compared, "no cell has the tag nbval-check-output: verdicts and counts should be compared"
    for cell in compared:
        assert cell["outputs"], f"a cell that is compared prints nothing: {''.join(cell['source'])[:80]}"


@each_lesson
def test_tags_are_those_that_nbval_knows(path: Path) -> None:
    for cell in cells(path):
        for tag in cell["metadata"].get("tags", []):
            assert not tag.startswith("nbval") or tag in metadata_tags, f"nbval knows no tag {tag!r}"


@each_lesson
def test_file_is_small(path: Path) -> None:
    assert path.stat().st_size <= MOST_BYTES


@each_lesson
def test_the_import_cell_is_folded(path: Path) -> None:
    """The first code cell contains only imports, so it is folded."""
    first = cells(path)[0]
    assert "import" in "".join(first["source"])
    assert "hide-input" in first["metadata"]["tags"] and first["metadata"]["jupyter"]["source_hidden"]


def test_day_1_reaches_an_exercise_within_25_cells() -> None:
    """Day 1 begins with setup, a first kernel, a first verdict and a first exercise."""
    every = json.loads(NOTEBOOKS[NAMES.index("day01_residual_add")].read_text(encoding="utf-8"))["cells"]
    first = ["".join(cell["source"]) for cell in every[:25]]
    places = [
        next(number for number, text in enumerate(first) if wanted in text)
        for wanted in ("**Setup.**", "## The first kernel", "## Your first verdict", "## Your first exercise")
    ]
    assert places == sorted(places)
    assert not [text for text in first if "NeoX" in text or "Amdahl" in text or "pybind" in text]


@pytest.mark.parametrize(
    "path", [p for p, name in zip(NOTEBOOKS, NAMES) if name.startswith("day") and name[3:5] != "15"]
)
def test_the_lesson_links_to_the_flow_chart(path: Path) -> None:
    text = "".join("".join(cell["source"]) for cell in cells(path, "markdown"))
    assert "](../day15_performance/lesson.ipynb#6-which-unit-limits-a-kernel)" in text
