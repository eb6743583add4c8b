"""The course that came with this grader: next to the package in a clone, inside it in a wheel.

wheel.py runs this file by its path to select the contents of the wheel, so this file must not import the grader.
"""

from __future__ import annotations

from pathlib import Path

FOLDERS = ("exercises", "lessons", "solutions")
"""The folders of a clone that make up a learner's course."""

INSIDE = "course_files"
"""The folder of the package that holds them in a wheel."""

_INSIDE = Path(__file__).resolve().parents[1] / INSIDE

IN_WHEEL = _INSIDE.is_dir()
"""True if the package was installed from a wheel, rather than run in a clone."""

COURSE = _INSIDE if IN_WHEEL else _INSIDE.parents[1]
"""The folder that holds ``exercises/course.toml``."""

# Files that Python, the compilers, `grader reset` and `grader init` create in these folders.
_LEFT_BEHIND = (".bak", ".new", ".pyc", ".so", ".o")


def install_extra(name: str) -> str:
    """Return the command that installs an optional part of the package, such as ``nvcc``, for this installation."""
    if not IN_WHEEL:
        return f"pip install -e '.[{name}]' in the course folder"
    return f"pip install '{_installed_name(_INSIDE.parents[1])}[{name}]'"


def _installed_name(packages: Path) -> str:
    """Return the name of the distribution that pip installed in a folder of packages together with the grader."""
    import importlib.metadata  # here, because it is slow to import and rarely needed

    ours = f"{_INSIDE.parent.name}/__init__.py"
    for found in importlib.metadata.distributions(path=[str(packages)]):
        if any(file.as_posix() == ours for file in found.files or ()):
            return found.name
    return "llm-kernels"


def files(course: Path = COURSE) -> list[str]:
    """Return the course's files, as relative paths with slashes, without files that programs created."""
    found = [path.relative_to(course) for folder in FOLDERS for path in (course / folder).rglob("*") if path.is_file()]
    return sorted(path.as_posix() for path in found if not _left_behind(path))


def _left_behind(path: Path) -> bool:
    folders = ("__pycache__", "puzzles")
    return path.suffix in _LEFT_BEHIND or any(part in folders or part.startswith(".") for part in path.parts)
