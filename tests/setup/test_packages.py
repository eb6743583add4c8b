"""A program of the course without one of its packages ends with one line that says what to install."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from grader.cli.app import run as cli
from grader.course import Course
from grader.setup.packages import NEEDED, REQUIREMENTS, missing_package

ROOT = Path(__file__).resolve().parents[2]


STUB = """
def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    return object
"""
SCRIPTS = sorted(
    path.relative_to(ROOT).as_posix()
    for path in [*ROOT.glob("lessons/*/*.py"), *ROOT.glob("tests/gpu/*.py")]
    if "__main__" in (text := path.read_text(encoding="utf-8")) and re.search(r"\bgrader\b|other_days", text)
)


def run_without(packages: list[str], folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """Run a Python program with modules in the place of ``packages`` that raise what a missing package raises.

    Modules whose names are all ``object`` take the place of packages that are slow to import.
    """
    for name in ("torch/nn/functional", "torch/nn/attention", "transformers", "tokenizers"):
        for part in [Path(name), *Path(name).parents][:-1]:
            (folder / part).mkdir(parents=True, exist_ok=True)
            (folder / part / "__init__.py").write_text(STUB)
    for name in packages:
        text = f"raise ModuleNotFoundError(\"No module named '{name}'\", name='{name}')\n"
        (folder / f"{name}.py").write_text(text)
    return subprocess.run(
        [sys.executable, *command],
        cwd=ROOT,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(folder), "HOME": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )


def explains(done: subprocess.CompletedProcess[str], package: str) -> bool:
    """Return whether a program ended with the line about ``package``, and printed nothing else."""
    begin = f"error: {package} is not installed for {sys.executable}: run `make` in the course folder"
    end = f"{sys.executable} -m pip install {shlex.quote(REQUIREMENTS[package])}`\n"
    text = done.stderr
    return (
        (done.returncode, done.stdout) == (2, "")
        and text.startswith(begin)
        and text.endswith(end)
        and text.count("\n") == 1
    )


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_script_says_what_to_install(tmp_path: Path, script: str) -> None:
    module = script.removesuffix(".py").replace("/", ".")
    done = run_without(["msgspec"], tmp_path, *(["-m", module] if script.startswith("tests/") else [script]))
    assert explains(done, "msgspec"), done


@pytest.mark.parametrize(
    ("package", "command"),
    [
        ("typer", ["-m", "grader", "list"]),
        ("msgspec", ["-m", "grader", "list"]),
        ("rich", ["-m", "grader", "doctor"]),
        ("msgspec", ["-m", "tests.records"]),
        ("elftools", ["-c", "import grader, elftools.elf"]),
        ("pytest", ["-c", "import tests.exercises.conftest"]),
    ],
    ids=lambda value: value if isinstance(value, str) else value[-1].split()[-1],
)
def test_a_command_says_what_to_install(tmp_path: Path, package: str, command: list[str]) -> None:
    done = run_without([package], tmp_path, *command)
    assert explains(done, package), done


def test_a_package_that_is_missing_within_a_command_is_no_bug(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def load(self: Course) -> None:
        raise ModuleNotFoundError("No module named 'elftools'", name="elftools")

    monkeypatch.setattr(Course, "__init__", load)
    assert cli(["list"]) == 2
    assert capsys.readouterr().err.startswith("error: elftools is not installed for ")


def test_a_missing_module_of_the_learner_keeps_its_traceback(tmp_path: Path) -> None:
    done = run_without([], tmp_path, "-c", "import grader; import my_own_module")
    assert done.returncode == 1 and done.stderr.startswith("Traceback")
    assert done.stderr.endswith("ModuleNotFoundError: No module named 'my_own_module'\n")


@pytest.mark.parametrize(
    "error", [ImportError("cannot import name 'x'", name="msgspec"), ValueError(), None, ModuleNotFoundError("no name")]
)
def test_other_errors_are_not_explained(error: BaseException | None) -> None:
    assert missing_package(error) == ""


def test_all_missing_packages_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name in ("elftools", "typer") else object())
    text = missing_package(ModuleNotFoundError(name="elftools.elf"))
    assert text.startswith("elftools, typer are not installed")
    assert text.endswith("-m pip install pyelftools 'typer<0.29'`")


def test_the_requirements_are_those_of_the_project() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    known = [*project["dependencies"], *project["optional-dependencies"]["test"]]
    assert set(REQUIREMENTS.values()) <= set(known)
    assert set(NEEDED) <= set(REQUIREMENTS)
    names = {re.split(r"[<>=; ]", requirement)[0] for requirement in project["dependencies"]}
    explained = {re.split(r"[<>=; ]", requirement)[0] for requirement in REQUIREMENTS.values()}
    # The programs do not import the others: they run ninja and Jupyter, and only day 16 reads models.
    others = {"ninja", "jupyterlab", "ipykernel", "safetensors", "tokenizers", "nvidia-ml-py"}
    assert names - explained == others
