"""Files that a jailed compiler can see."""

from __future__ import annotations

from pathlib import Path

import pytest

from grader.execution.jail import compiling, staging
from grader.execution.jail.running import Jail
from grader.frontend.toolchain.process import Command
from grader.setup import shipped
from grader.setup.errors import GraderError


def test_folders_inside_system_folders_are_not_bound_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Check that a folder is bound only once.

    CUDA's packages make /usr/local/cuda a symbolic link, and bubblewrap cannot bind a folder to a link.
    """
    system, course = tmp_path / "system", tmp_path / "course"
    (system / "cuda-13.0").mkdir(parents=True)
    course.mkdir()
    for folder in (tmp_path, system, course, system / "cuda-13.0", *tmp_path.parents[:2]):
        folder.chmod(0o755)
    (system / "cuda").symlink_to("cuda-13.0")
    (course / "elsewhere").symlink_to(system)
    (system / "back").symlink_to(course)
    monkeypatch.setattr(compiling, "_SYSTEM", (system,))
    monkeypatch.setattr(compiling, "bubblewrap", lambda environment: ["bwrap"])
    monkeypatch.setattr(compiling, "reachable", lambda path: path)
    reads = (system / "cuda", system / "cuda-13.0", course, course / "elsewhere", system / "back")
    argv, _ = compiling._bwrap(Command((str(system / "nvcc"),), tmp_path, reads), tmp_path)
    bound = [argv[i + 2] for i, word in enumerate(argv) if word == "--ro-bind"]
    assert [path for path in reads if str(path) in bound] == [course, course / "elsewhere", system / "back"]
    copied = staging.own_folder() / "copy"
    monkeypatch.setattr(compiling, "reachable", lambda path: copied)
    argv, _ = compiling._bwrap(Command((str(system / "nvcc"),), tmp_path, reads[1:2]), tmp_path)
    assert str(copied) in argv, "the copy of a file that the jail's user cannot read should be bound"


def test_the_course_inside_an_installed_package_is_hidden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`grader run` works without a course, also if the wheel is installed in a system folder."""
    package, elsewhere = tmp_path / "system" / "course_files", tmp_path / "elsewhere"
    for folder in (package / "solutions", package / "exercises", package / "lessons", elsewhere):
        folder.mkdir(parents=True)
    monkeypatch.setattr(compiling, "_SYSTEM", (tmp_path / "system",))
    monkeypatch.setattr(shipped, "COURSE", package)
    monkeypatch.setattr(shipped, "IN_WHEEL", True)
    monkeypatch.delenv("GRADER_COURSE", raising=False)
    monkeypatch.chdir(elsewhere)
    assert compiling._hidden() == [package / "solutions", package / "exercises"]


def test_a_compiler_that_only_has_to_wait_for_a_processor_is_not_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiling, "SECONDS", 0.1)
    monkeypatch.setattr(compiling, "PATIENCE", 600)
    assert compiling._wait("sleep", ["sleep", "0.3"], {}) == (0, "")
    monkeypatch.setattr(compiling, "PATIENCE", 1)
    status, said = compiling._wait("sleep", ["sleep", "600"], {})
    assert status != 0 and said == "error: sleep was stopped: it did not end within 0 s\n"


def test_a_sandbox_that_does_not_start_is_not_the_compilers_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = "bwrap: No permissions to create new namespace. See <https://deb.li/bubblewrap>."
    monkeypatch.setattr(compiling, "_bwrap", lambda command, scratch: (["sh", "-c", f"echo '{said}' >&2; exit 1"], {}))
    with pytest.raises(GraderError) as caught:
        compiling.run_in(Jail("bwrap"))(Command(("g++", "-c", "unit.cpp"), tmp_path))
    assert caught.value.message == f"the sandbox does not start: {said}"
