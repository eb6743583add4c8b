"""The notebook's magic commands: files that they write and output that they show, with a fake judge."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from IPython.core.interactiveshell import InteractiveShell

from grader.course import Course
from grader.course.learner.progress import ProgressFile
from tests.cli.test_puzzles import PUZZLES


class Notebook:
    """An IPython shell without a terminal."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self.shell = InteractiveShell()
        self.capsys = capsys
        assert self.run("%load_ext grader") == (True, "")

    def run(self, cell: str) -> tuple[bool, str]:
        """Return whether the cell succeeded, and its output with each run of white space as one blank."""
        done = self.shell.run_cell(cell)
        captured = self.capsys.readouterr()
        return done.success, " ".join((captured.out + captured.err).split())

    def completions(self, line: str) -> list[str]:
        return self.shell.complete(None, line, len(line))[1]


@pytest.fixture
def notebook(course: Course, judge: list[str], capsys: pytest.CaptureFixture[str]) -> Iterator[Notebook]:
    yield Notebook(capsys)
    InteractiveShell.clear_instance()


def test_a_cell_becomes_the_file_and_is_graded(notebook: Notebook, course: Course, judge: list[str]) -> None:
    file = course.find("first").skeleton
    good, shown = notebook.run("%%kernel first\n// not yet\n")
    assert good and "Not passed yet" in shown and "%hint first" in shown and "saved as first.cu.1.bak" in shown
    assert file.read_text() == "// not yet\n"
    good, shown = notebook.run("%%kernel 1/first\n// solved")
    assert good and "10 of 10 points" in shown and "%kernel second" in shown and "kept" not in shown
    assert file.read_text() == "// solved\n" and judge == ["day01_start/first"] * 2
    assert ProgressFile(course.root).read().of("day01_start/first").passed


def test_a_file_is_graded_without_a_cell(notebook: Notebook, course: Course) -> None:
    (course.root / "other.cu").write_text("// solved")
    good, shown = notebook.run("%grade first --file other.cu")
    assert good and "Passed" in shown
    assert not ProgressFile(course.root).read().of("day01_start/first").passed, "the file was not the learner's own"
    assert "stops at Correct" in notebook.run("%grade first")[1]


@pytest.mark.parametrize("gpu", ["B200", '"RTX 5090"', "'RTX 3060 Laptop'", "4090", "T4"])
def test_a_gpu_is_chosen_by_its_name(notebook: Notebook, course: Course, gpu: str) -> None:
    (course.root / "other.cu").write_text("// solved")
    good, shown = notebook.run(f"%grade first --file other.cu -v --gpu {gpu}")
    assert good and "Passed" in shown


def test_a_file_is_loaded_into_a_cell(notebook: Notebook) -> None:
    written = []
    notebook.shell.set_next_input = lambda text, replace: written.append((text, replace))
    assert notebook.run("%kernel first  # put the exercise's file into this cell")[0]
    assert written == [("%%kernel day01_start/first\n// TODO: first\n", True)]
    _, shown = notebook.run("%grade first --file 'week #1/no#2.cu' # it's the second")
    assert "week #1/no#2.cu" in shown and "closing" not in shown


def test_hints_and_progress(notebook: Notebook) -> None:
    assert "a nudge" in notebook.run("%hint first")[1] and "the idea" in notebook.run("%hint first")[1]
    good, shown = notebook.run("%progress")
    assert good and "0 of 2 exercises passed" in shown and "%kernel first" in shown


MISTAKES = {
    "%%kernel frist\nx": "there is no exercise 'frist' Did you mean day01_start/first?",
    "%%kernel first\n  \n\n": "the cell contains no code for day01_start/first",
    "%%kernel first\n": "cell body is empty",
    "%%kernel\nx": "the following arguments are required: EXERCISE",
    "%%kernel first --fast\nx": "%%kernel: unrecognized arguments: --fast",
    "%%kernel first 'x\ny": "no closing quotation",
    "%grade first --device tpu": "invalid choice: 'tpu'",
    "%grade first --seed x": "invalid int value: 'x'",
    "%grade first --gpu GT9": "'GT9'",
    "%hint": "required: EXERCISE",
    "%progress now": "%progress takes no arguments",
}


@pytest.mark.parametrize(("cell", "says"), MISTAKES.items())
def test_a_mistake_is_one_message(notebook: Notebook, judge: list[str], cell: str, says: str) -> None:
    good, shown = notebook.run(cell)
    assert not good and says in shown and len(shown) < 400
    assert "Traceback" not in shown and "File " not in shown and not judge


def test_the_extension_can_be_loaded_twice_and_unloaded(notebook: Notebook) -> None:
    assert notebook.run("%load_ext grader")[1].startswith("The grader extension is already loaded")
    assert notebook.run("%reload_ext grader") == (True, "") and notebook.run("%progress")[0]
    notebook.run("%unload_ext grader")
    good, shown = notebook.run("%progress")
    assert not good and "not found" in shown and "first" not in notebook.completions("%grade fi")


def test_missing_packages_are_named(
    course: Course, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "msgspec", None)
    shell = InteractiveShell()
    assert not shell.run_cell("%load_ext grader").success
    shown = capsys.readouterr()
    assert "%pip install msgspec, then %load_ext grader again" in shown.out + shown.err


def test_the_stop_button_prints_one_line(notebook: Notebook, monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("grader.judge.check", stopped)
    good, shown = notebook.run("%%kernel first\nx")
    assert not good and shown == (
        "The previous exercises/day01_start/first.cu is saved as first.cu.1.bak beside it. "
        "day01_start/first was not graded. stopped"
    )


@pytest.mark.parametrize(
    ("line", "becomes"),
    [
        ("%%kernel fi", ["first"]),
        ("%grade day01_start/s", ["day01_start/second"]),
        ("%hint ", ["day01_start/first", "day01_start/second"]),
        ("%%kernel first --de", ["--device"]),
        ("%grade first --fi", ["--file"]),
        ("%%kernel first --fi", []),
    ],
)
def test_tab_completes_names_and_options(notebook: Notebook, line: str, becomes: list[str]) -> None:
    assert notebook.completions(line) == becomes


@pytest.mark.parametrize("launcher", ["second", "second_f16"])
def test_the_kernel_of_another_exercise_is_not_saved(
    notebook: Notebook, course: Course, judge: list[str], launcher: str
) -> None:
    first = course.find("first").skeleton
    before = first.read_text()
    cell = f'extern "C" void {launcher}(float* x, cudaStream_t stream) {{}}\n'
    good, shown = notebook.run(f"%%kernel first\n{cell}")
    assert not good and "begin the cell with: %%kernel second" in shown and "nothing was saved" in shown
    assert first.read_text() == before and not judge
    assert notebook.run(f"%%kernel first\n{cell.replace(launcher, 'mine')}")[0], "no other exercise has this launcher"
    assert notebook.run(f"%%kernel first\n{cell}{cell.replace(launcher, 'first')}")[0]


def test_the_next_puzzle_is_a_command_of_notebooks(notebook: Notebook, course: Course) -> None:
    (course.root / "exercises/day01_start/puzzles.toml").write_text(PUZZLES)
    assert "solved, next: %kernel double" in notebook.run("%progress")[1]


def test_a_puzzle_in_a_cell(notebook: Notebook, course: Course) -> None:
    (course.root / "exercises/day01_start/puzzles.toml").write_text(PUZZLES)
    written = []
    notebook.shell.set_next_input = lambda text, replace: written.append(text)
    notebook.run("%kernel double")
    assert written and written[0].startswith("%%kernel day01_start/double\n#include <cuda_runtime.h>\n")
    good, shown = notebook.run(written[0])
    line = next(number for number, text in enumerate(written[0].splitlines(), 1) if "____" in text)
    assert not good and f"line {line} of the cell still has the blank ____" in shown
    good, shown = notebook.run("%grade double")
    assert not good and f"double.cu:{line - 1} still has the blank ____" in shown
    good, shown = notebook.run(written[0].replace("____", "// solved"))
    assert good and "Passed" in shown and "kept" not in shown
    assert ProgressFile(course.root).read().of("day01_start/double").passed
    assert "day01_start/double" in notebook.completions("%kernel day01_start/d")
