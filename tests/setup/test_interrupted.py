"""After an interrupted set-up, the next one detects what is incomplete and finishes it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys

import pytest

from grader.setup import set_up, state
from grader.setup.display import Display
from grader.setup.installer import Installer
from grader.setup.state import Folder
from tests.setup.conftest import TinyCourse

PLACES = ["venv", "tools", "download", "unpacking", "ahead"]


def test_set_up_once_then_nothing_to_do(course: TinyCourse) -> None:
    code, said = course.set_up()
    assert code == 0 and course.complete, said
    assert "downloading torch 2.0 (50 MB)" in said and "complete" in said
    assert not (course.root / ".venv" / "tmp").exists()
    course.tell("tools", says="pip must not run again")
    assert course.set_up() == (0, "")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
@pytest.mark.parametrize("place", PLACES)
def test_the_next_set_up_finishes_it(course: TinyCourse, place: str, number: int) -> None:
    code, said = course.stop(place, number)
    assert not course.complete
    assert "Traceback" not in said
    if number == signal.SIGKILL:
        assert code == -signal.SIGKILL
    else:
        assert code == 130 and "run `make` again" in said
    code, said = course.set_up()
    assert code == 0 and course.complete, said
    assert course.torch == "2.0"
    anew = "an earlier set-up was not completed" in said
    assert anew == (place != "ahead"), "completely installed packages must stay, and all others must be installed again"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
@pytest.mark.parametrize("place", ["tools", "download", "unpacking"])
def test_an_update_that_was_interrupted(course: TinyCourse, place: str, number: int) -> None:
    course.set_up()
    course.pin("2.1")
    course.stop(place, number)
    code, said = course.set_up()
    assert code == 0 and course.complete and course.torch == "2.1", said
    # If the first run changed no package and ended normally, the second run updates the environment.
    assert ("Updating" in said) == (number == signal.SIGINT and place != "unpacking")


def test_an_update_without_a_network_leaves_what_was_there(course: TinyCourse) -> None:
    course.set_up()
    course.pin("2.1")
    course.tell("download", says="ERROR: Failed to establish a new connection: [Errno 111] Connection refused")
    code, said = course.set_up()
    assert code == 2 and "could not be reached" in said
    assert course.complete and course.torch == "2.0"
    course.tell(None)
    code, said = course.set_up()
    assert "Updating" in said and course.torch == "2.1"


def test_a_failed_unpacking_recreates_the_environment(course: TinyCourse) -> None:
    course.set_up()
    course.pin("2.1")
    course.tell(
        "unpacking", says="ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device"
    )
    code, said = course.set_up()
    assert code == 2 and "The disk is full." in said and not course.complete
    course.tell(None)
    code, said = course.set_up()
    assert code == 0 and "was not completed" in said and course.torch == "2.1"


def test_an_environment_of_unknown_origin_is_recreated(course: TinyCourse) -> None:
    (course.root / ".venv").mkdir()
    (course.root / ".venv" / ".installed").touch()
    code, said = course.set_up()
    assert code == 0 and course.complete and "was not completed" in said


def test_set_up_waits_for_another_set_up_of_the_same_course(course: TinyCourse) -> None:
    course.tell("download")
    first = course.start()
    second = None
    try:
        while not (course.root / "reached").exists():
            assert first.poll() is None
        second = course.start()
        assert "Another `make`" in second.stdout.readline()
    finally:
        course.tell(None)
        first.send_signal(signal.SIGINT)
        first.communicate(timeout=1000)
        if second is not None:
            said, _ = second.communicate(timeout=1000)
    assert second.returncode == 0 and course.complete, said


def test_set_up_waits_for_processes_of_a_killed_set_up(course: TinyCourse) -> None:
    """Wait for a pip process that outlived its set-up, because it would write to the next .venv."""
    from grader.setup.display import Display
    from grader.setup.set_up import alone
    from grader.setup.state import Folder

    with alone(Folder(course.root), Display()) as lock:
        sleeper = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, pass_fds=[lock])
    second = course.start()
    try:
        assert "Another `make`" in second.stdout.readline()
    finally:
        sleeper.communicate(b"\n")
        second.communicate(timeout=1000)
    assert second.returncode == 0 and course.complete


PRINTS = "import sys, grader\nprint(sys.argv[1:], sys.prefix, grader.__file__)\n"


def write_program(course: TinyCourse, name: str, first: str) -> None:
    """Write a program into .venv/bin, as pip does. ``{bin}`` in its first lines stands for that folder."""
    programs = course.root / ".venv" / "bin"
    (programs / name).write_text(first.replace("{bin}", str(programs)) + PRINTS)
    (programs / name).chmod(0o755)


def run_program(course: TinyCourse, name: str, *arguments: str) -> str:
    """Return what a program in .venv/bin prints, started outside the course."""
    command = [course.root / ".venv" / "bin" / name, *arguments]
    surroundings = {"PATH": os.environ["PATH"]}  # without PYTHONPATH
    return subprocess.run(command, cwd="/", env=surroundings, stdout=subprocess.PIPE, text=True).stdout


def test_a_moved_course_is_repaired_without_a_download(course: TinyCourse) -> None:
    course.set_up()
    write_program(course, "short", "#!{bin}/python3\n")
    write_program(course, "long", "#!/bin/sh\n'''exec' \"{bin}/python\" \"$0\" \"$@\"\n' '''\n")
    write_program(course, "other", f"#!{sys.executable}\n")
    other = (course.root / ".venv" / "bin" / "other").read_bytes()
    for name in ("moved", 'für alle, it\'s "mine" $HOME', "a" * 200):
        former, course.root = course.root, shutil.move(course.root, course.root.with_name(name))
        course.tell("download", says="ERROR: a download was tried")
        code, said = course.set_up()
        assert code == 0 and course.complete, said
        assert f"Repairing .venv: the course was moved here from {former}." in said
        assert course.set_up() == (0, "")
        programs = course.root / ".venv" / "bin"
        for program in ("short", "long"):
            assert (
                run_program(course, program, "a b") == f"['a b'] {course.root}/.venv {course.root}/grader/__init__.py\n"
            )
        assert (programs / "other").read_bytes() == other
        assert str(former) not in (programs / "activate").read_text()


@pytest.mark.parametrize("step", ["programs", "venv", "pip"])
def test_an_interrupted_repair_is_continued(course: TinyCourse, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    course.set_up()
    write_program(course, "program", "#!{bin}/python\n")
    course.root = shutil.move(course.root, course.root.with_name("moved"))
    folder = Folder(course.root)

    def stop(*arguments: object) -> None:
        if step == "programs" or step in arguments[1]:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Installer, "run", stop)
        if step == "programs":
            patch.setattr(set_up, "relocate_programs", stop)
        with pytest.raises(KeyboardInterrupt):
            set_up.SetUp(folder, state.plan(folder), [], Display(), 0).finish()
    code, said = course.set_up()
    assert code == 0 and "Repairing" in said and course.complete, said
    assert run_program(course, "program") == f"[] {course.root}/.venv {course.root}/grader/__init__.py\n"


def test_a_moved_course_with_other_packages_is_repaired_and_updated(course: TinyCourse) -> None:
    course.set_up()
    course.root = shutil.move(course.root, course.root.with_name("moved"))
    course.pin("2.1")
    code, said = course.set_up()
    assert code == 0 and "Repairing" in said and "Updating" in said and course.torch == "2.1", said
    assert course.set_up() == (0, "")


@pytest.mark.parametrize(("target", "became"), [("/usr/bin/python-of-last-year", "removed"), ("/bin/sh", "replaced")])
def test_a_python_that_is_gone_or_another(course: TinyCourse, target: str, became: str) -> None:
    course.set_up()
    python = course.root / ".venv" / "bin" / "python"
    python.unlink()
    python.symlink_to(target)
    code, said = course.set_up()
    assert code == 0 and f"the Python of .venv was {became}" in said and course.complete


def test_another_python_than_the_one_wanted(course: TinyCourse) -> None:
    course.set_up()
    record = course.root / ".venv" / ".installed"
    here = "{}.{}".format(*sys.version_info)
    record.write_text(record.read_text().replace(f'"python": "{here}"', '"python": "3.10"'))
    assert course.set_up() == (0, ""), "without --this-python, another version of Python is accepted"
    code, said = course.set_up("--this-python")
    assert code == 0 and f".venv has Python 3.10, but {here} was requested" in said and course.complete
