"""JupyterLab in a browser: all cells of day 1 run, and a cell is graded."""

from __future__ import annotations

import json
import os
import re
import secrets
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import nbformat
import psutil
import pytest

from grader.course import Course
from grader.course.puzzles import BLANK, find_puzzle
from grader.report.notebook import predict
from tests.browser.conftest import DESKTOP, PHONE, SECONDS, OpenPage, tab_to
from tests.course_copy import ROOT, copy_course

if TYPE_CHECKING:
    from playwright.sync_api import Page

DAY = "day01_residual_add"
SOLUTION = (ROOT / "solutions" / DAY / "residual_add.cu").read_text()
WRONG = SOLUTION.replace("a.get(j) + b.get(j)", "a.get(j) - b.get(j)")


@dataclass
class Lab:
    """A running JupyterLab server. Its folder contains the course; its settings are in another folder."""

    root: Path
    url: str
    token: str

    def address(self, path: str) -> str:
        """Return the URL of a notebook in a new workspace, so that JupyterLab reopens nothing."""
        return f"{self.url}lab/workspaces/{secrets.token_hex(4)}/tree/{path}?token={self.token}"


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory, browser: object) -> Iterator[Lab]:
    """Start JupyterLab on a free port; stop it and its kernels at the end."""
    root, home = copy_course(tmp_path_factory.mktemp("lab")), tmp_path_factory.mktemp("home")
    token = secrets.token_hex(16)
    settings = home / "config" / "lab" / "user-settings" / "@jupyterlab"
    for plugin, values in {
        "apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False, "doNotDisturbMode": True},
        "notebook-extension/tracker": {"windowingMode": "none"},
    }.items():
        file = settings / f"{plugin}.jupyterlab-settings"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(values))
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("JUPYTER", "GRADER_COURSE"))
    }
    environment |= {"JUPYTER_CONFIG_DIR": str(home / "config"), "JUPYTER_DATA_DIR": str(home / "data")}
    environment |= {
        "JUPYTER_RUNTIME_DIR": str(home / "runtime"),
        "JUPYTERLAB_SETTINGS_DIR": str(home / "config/lab/user-settings"),
    }
    environment |= {
        "JUPYTERLAB_WORKSPACES_DIR": str(home / "workspaces"),
        "JUPYTER_TOKEN": token,
        "PYTHONPATH": str(ROOT),
    }
    # The server gets another HOME, but uses the usual build cache.
    environment.setdefault("XDG_CACHE_HOME", str(Path.home() / ".cache"))
    environment |= {"HOME": str(home), "IPYTHONDIR": str(home / "ipython"), "CUDA_VISIBLE_DEVICES": ""}
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--ServerApp.port=0", "--ServerApp.ip=127.0.0.1"]
    command += ["--allow-root"] if os.geteuid() == 0 else []
    log = open(home / "log", "w")  # noqa: SIM115
    server = subprocess.Popen(command, cwd=root, env=environment, stdout=log, stderr=log)
    try:
        yield Lab(root, _url(server, home), token)
    finally:
        family = [psutil.Process(server.pid), *psutil.Process(server.pid).children(recursive=True)]
        server.terminate()
        _, alive = psutil.wait_procs(family, timeout=20)
        for process in alive:
            process.kill()
        server.wait()
        log.close()


def _url(server: subprocess.Popen[bytes], home: Path) -> str:
    """Wait until the server prints its URL, and return it."""
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        assert server.poll() is None, (home / "log").read_text()[-3000:]
        for file in (home / "runtime").glob("jpserver-*.json"):
            try:
                return json.loads(file.read_text())["url"]
            except (ValueError, KeyError):  # the file is incomplete
                continue
        time.sleep(0.1)
    raise AssertionError((home / "log").read_text()[-3000:])


def opened(open_page: OpenPage, lab: Lab, path: str, size: tuple[int, int] = DESKTOP) -> Page:
    """Open a notebook and wait until its kernel is ready."""
    from playwright.sync_api import expect

    page = open_page(size)
    # JupyterLab asks which kernel to use if there are several.
    page.add_locator_handler(page.locator(".jp-Dialog"), lambda dialog: dialog.locator(".jp-mod-accept").click())
    page.goto(lab.address(path))
    expect(page.locator(".jp-Notebook .jp-Cell").first).to_be_visible()
    expect(page.locator("#jp-main-statusbar")).to_contain_text("Python 3 (ipykernel) | Idle")
    return page


def run_all(page: Page) -> None:
    """Run all cells with the menu."""
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.get_by_role("menuitem", name="Run All Cells", exact=True).click()


def test_day_1_runs_to_its_end(open_page: OpenPage, lab: Lab) -> None:
    from playwright.sync_api import expect

    path = lab.root / "lessons" / DAY / "lesson.ipynb"
    notebook = nbformat.read(path, as_version=4)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    nbformat.write(notebook, path)
    page = opened(open_page, lab, f"lessons/{DAY}/lesson.ipynb")
    run_all(page)
    prompts = page.locator(".jp-CodeCell .jp-InputPrompt")
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    expect(prompts).to_have_count(len(cells))
    # A collapsed cell has a prompt without a number.
    shown = [n for n, cell in enumerate(cells) if not cell.metadata.get("jupyter", {}).get("source_hidden")]
    for number in reversed(shown):  # wait for the last cell first: then all others have run
        expect(prompts.nth(number)).to_have_text(re.compile(rf"\[{number + 1}\]:"))
    assert page.locator(".jp-OutputArea-output[data-mime-type='application/vnd.jupyter.error']").count() == 0
    assert page.locator("mjx-merror").count() == 0


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desk", "phone"])
def test_a_prediction_by_keyboard(open_page: OpenPage, lab: Lab, size: tuple[int, int]) -> None:
    """Check that an untrusted notebook folds the answer, and that keys typed in an executed cell's form are text."""
    from playwright.sync_api import expect

    number = "predict('How many?', 128, because='It is one block.')"
    choice = "predict('Which unit?', 'memory', choices=['memory', 'arithmetic'], because='It only copies.')"
    before = predict("How many?", 128, because="It is one block.")
    output = nbformat.v4.new_output("execute_result", data=before._repr_mimebundle_(), execution_count=1)
    load = "from grader.report.notebook import predict\n"
    cells = [
        nbformat.v4.new_code_cell(load + number, outputs=[output]),
        nbformat.v4.new_code_cell(choice),
    ]
    notebook = nbformat.v4.new_notebook(cells=cells)
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(notebook, lab.root / f"asks{size[0]}.ipynb")
    page = opened(open_page, lab, f"asks{size[0]}.ipynb", size)
    shown = page.locator(".jp-OutputArea-output")
    expect(shown.locator("summary")).to_be_visible()
    assert shown.locator("iframe").count() == 0
    tab_to(page, "summary")
    page.keyboard.press("Enter")
    expect(shown.get_by_text("It is one block.")).to_be_visible()
    page.keyboard.press("Shift+Enter")  # run this cell and go to the next
    page.keyboard.press("Control+Enter")
    first, second = (page.frame_locator(f"iframe[title*='{question}']") for question in ("How many", "Which unit"))
    expect(second.get_by_label("memory")).to_be_visible()
    tab_to(page, "input[type=radio]")
    page.keyboard.press("Space")
    page.keyboard.press("Enter")
    expect(second.get_by_role("status")).to_have_text("Right. The answer: memory. It only copies.")
    tab_to(page, "#number", "Shift+Tab")
    page.keyboard.type("120")
    page.keyboard.press("Enter")
    expect(first.get_by_role("status")).to_have_text("Right, within 6 %. The answer: 128. It is one block.")
    # JupyterLab did not take the keys 1, 2 and 0 as shortcuts.
    expect(page.locator(".jp-Notebook .jp-CodeCell")).to_have_count(2)
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), "the page scrolls sideways"


@pytest.mark.parametrize(
    ("size", "name", "answer"), [(DESKTOP, "broadcast", "0"), (PHONE, "padded_tile", "33")], ids=["desk", "phone"]
)
def test_a_puzzle_and_a_solution_by_keyboard(
    open_page: OpenPage, lab: Lab, size: tuple[int, int], name: str, answer: str
) -> None:
    """With the keyboard only, load a puzzle, fill in its blank, run it, play its steps, and unfold a solution."""
    from playwright.sync_api import expect

    puzzle = find_puzzle(Course(lab.root), name)
    assert puzzle and puzzle.listed.answers == (answer,)
    load = "%load_ext grader\nfrom grader.report.notebook import show_source\n"
    folded = f"show_source('solutions/{DAY}/residual_add.cu', folded='After you have solved it')"
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(source) for source in (load + folded, f"%kernel {name}")]
    )
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(notebook, lab.root / f"puzzle{size[0]}.ipynb")
    page = opened(open_page, lab, f"puzzle{size[0]}.ipynb", size)
    tab_to(page, ".jp-Cell")
    page.keyboard.press("Shift+Enter")  # show the folded solution, and go to the next cell
    page.keyboard.press("Control+Enter")  # load the puzzle into that cell
    solution, cell = page.locator(".jp-CodeCell").nth(0), page.locator(".jp-CodeCell").nth(1)
    expect(cell.locator(".jp-Editor")).to_contain_text(f"%%kernel {puzzle.name}")
    lines = ["", *puzzle.text.splitlines()]  # the magic's line is the first one
    (row,) = (number for number, line in enumerate(lines) if BLANK in line)
    for key, times in (
        ("Enter", 1),
        ("Control+Home", 1),
        ("ArrowDown", row),
        ("Home", 2),
        ("ArrowRight", lines[row].index(BLANK)),
        ("Delete", len(BLANK)),
        *((digit, 1) for digit in answer),
    ):
        for _ in range(times):
            page.keyboard.press(key)
    expect(cell.locator(".jp-Editor")).to_contain_text(lines[row].strip().replace(BLANK, answer))
    page.keyboard.press("Control+Enter")
    expect(cell.locator(".jp-OutputArea")).to_contain_text("1 of 1 points")
    played = cell.locator("details:has(> summary:text('What the threads did'))")
    tab_to(page, "summary:text('What the threads did')")
    page.keyboard.press("Enter")
    expect(played.frame_locator("iframe").locator("body")).to_contain_text("block (0, 0, 0)")
    tab_to(page, "summary:text('After you have solved it')", "Shift+Tab")
    page.keyboard.press("Enter")
    expect(solution.locator("details[open] pre")).to_contain_text("residual_add_f32")
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), "the page scrolls sideways"


def test_a_cell_is_graded(open_page: OpenPage, lab: Lab) -> None:
    from playwright.sync_api import expect

    sources = [
        "%load_ext grader",
        f"%%kernel residual_add\n{WRONG}",
        f"%%kernel residual_add\n{SOLUTION}",
        "%kernel strided_add",
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in sources])
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(notebook, lab.root / "mine.ipynb")
    page = opened(open_page, lab, "mine.ipynb")
    run_all(page)
    cells = page.locator(".jp-CodeCell")
    wrong, right = cells.nth(1), cells.nth(2)
    expect(wrong.locator(".jp-OutputArea")).to_contain_text("Not passed yet")
    expect(wrong.locator("details[open] summary")).to_have_text("Your kernel")
    expect(right.locator(".jp-OutputArea")).to_contain_text("10 of 10 points")
    source, limits = right.locator("details").all()
    expect(source.locator("summary")).to_have_text("Your kernel, with what each line moves")
    source.locator("summary").click()
    expect(source.locator("pre")).to_contain_text("residual_add_f32")
    limits.get_by_text("What limits the kernel").click()
    expect(limits).to_contain_text("not a prediction")
    expect(cells.nth(3)).to_contain_text("%%kernel day01_residual_add/strided_add")
    assert (lab.root / "exercises" / DAY / "residual_add.cu").read_text() == SOLUTION
