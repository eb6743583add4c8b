"""A failed set-up prints the reason, if it is known, and what to do."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from grader.setup.failures import Failure, explained
from tests.setup.conftest import TinyCourse

NOISE = "WARNING: Location 'file:///opt/simple/torch/' is ignored: it is neither a file nor a directory."
BROKEN = (
    "WARNING: Retrying (Retry(total=0, connect=None, read=None, redirect=None, status=None)) after connection "
    "broken by "
)
# Error messages of pip and uv.
OUTPUTS = {
    "could not be reached": [
        NOISE,
        BROKEN + "'NewConnectionError('<pip._vendor.urllib3.connection.HTTPSConnection object at 0x7f1>: Failed to"
        " establish a new connection: [Errno -2] Name or service not known')': /simple/pip/",
        "ERROR: Could not find a version that satisfies the requirement pip (from versions: 23.2.1)",
        "ERROR: ResolutionImpossible: for help visit https://pip.pypa.io/",
    ],
    "could not be reached (uv)": [
        "error: Request failed after 3 retries in 8.2s",
        "  cause: Failed to fetch: https://torch.invalid/whl/cpu/torch/",
        "  cause: failed to lookup address information: Name or service not known",
    ],
    "The proxy did not let": [
        BROKEN
        + "'ProxyError('Cannot connect to proxy.', NewConnectionError('[Errno 111] Connection refused'))': /simple/",
        "ERROR: No matching distribution found for pip",
    ],
    "certificate is not trusted": [
        BROKEN + "'SSLError(SSLCertVerificationError(1, '[SSL: CERTIFICATE_VERIFY_FAILED] self-signed certificate'))'",
        "ERROR: No matching distribution found for pip",
    ],
    "The disk is full": ["ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device"],
    "incompatible versions": [
        NOISE,
        "ERROR: Cannot install nbconvert because these package versions have conflicting dependencies.",
        "The conflict is caused by:",
        "    nbconvert 7.17.2 depends on bleach>=6",
        "    The user requested (constraint) bleach==5.0",
        "ERROR: ResolutionImpossible: for help visit https://pip.pypa.io/",
    ],
    "no build for this Python": [
        "ERROR: Could not find a version that satisfies the requirement torch==2.13.0 (from versions: none)",
        "ERROR: No matching distribution found for torch==2.13.0",
    ],
    "does not support this version of Python": [
        "ERROR: Package 'tiny' requires a different Python: 3.11.2 not in '>=3.12'"
    ],
    "A downloaded file is damaged": [
        "ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE.",
    ],
    "no such build of torch": ["error: invalid value 'cpuu' for '--torch-backend <TORCH_BACKEND>'"],
    "could not be written": ["ERROR: Could not install packages: [Errno 13] Permission denied: '/x/.venv/lib/y'"],
    "There was not enough memory": ["Installing collected packages: torch", "The program was ended by SIGKILL."],
    "could not be built here": ["ERROR: Failed building wheel for pyzmq"],
}


@pytest.mark.parametrize("reason", OUTPUTS)
def test_reasons(reason: str) -> None:
    failure = explained("Installing failed.", OUTPUTS[reason], changed=False)
    assert reason.partition(" (")[0] in failure.reason
    assert failure.advice and failure.lines
    assert not any("is ignored" in line or "_vendor" in line for line in failure.lines)


def test_a_failure_of_unknown_kind_shows_its_errors() -> None:
    failure = explained("Installing failed.", ["all is well", "SomeError: what nobody foresaw", "bye"], changed=True)
    assert str(failure) == "make: Installing failed.\n    SomeError: what nobody foresaw"
    assert explained("x", ["one", "two"], True).lines == ["one", "two"]


def test_a_conflict_names_the_packages() -> None:
    failure = explained("x", OUTPUTS["incompatible versions"], changed=False)
    assert "nbconvert 7.17.2 depends on bleach>=6" in failure.lines
    assert "The user requested (constraint) bleach==5.0" in failure.lines


def test_what_pip_printed_is_in_the_log(course: TinyCourse) -> None:
    course.tell("download", says=NOISE + "\nERROR: No matching distribution found for torch==2.0")
    code, said = course.set_up()
    assert code == 2
    assert said.count("ERROR: No matching distribution found") == 1 and "is ignored" not in said
    log = (course.root / ".venv" / "install.log").read_text()
    assert NOISE in log and "-e .[test]" in log and "Progress" not in log


def test_no_compiler(course: TinyCourse, tmp_path: Path) -> None:
    code, said = course.set_up(GRADER_CXX="", PATH=str(tmp_path))
    assert code == 2 and "no C++ compiler" in said and "apt install g++" in said
    assert not (course.root / ".venv").exists(), "nothing is downloaded before"


def test_a_link_in_place_of_the_environment(course: TinyCourse, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "kept").touch()
    (course.root / ".venv").symlink_to(tmp_path / "other")
    code, said = course.set_up()
    assert code == 2 and ".venv is a link" in said and (tmp_path / "other" / "kept").exists()


@pytest.mark.parametrize("place", [".venv", ".venv/lib", "."])
def test_an_environment_that_somebody_else_owns(course: TinyCourse, place: str) -> None:
    """Root created the environment, then a user runs `make`. A read-only file system would have the same effect."""
    course.set_up()
    course.pin("2.1") if place == "." else (course.root / ".venv" / ".installed").unlink()
    os.chmod(course.root / place, 0o555)
    try:
        code, said = course.set_up() if os.getuid() else as_a_user(course)
    finally:
        os.chmod(course.root / place, 0o755)
    assert code == 2, said
    assert "you cannot write in" in said and "chown" in said and "Traceback" not in said


def as_a_user(course: TinyCourse) -> tuple[int, str]:
    """Run the set-up as an unprivileged user, because root can write everywhere."""
    drop = [
        sys.executable,
        "-c",
        "import os, sys; os.setgid(65534); os.setuid(65534); os.execv(sys.argv[1], sys.argv[1:])",
    ]
    new_enough = ["-c", "import sys; sys.exit(sys.version_info < (3, 11))"]
    for python in (os.path.realpath(sys.executable), "/usr/bin/python3"):
        if subprocess.run([*drop, python, *new_enough], cwd="/", capture_output=True).returncode == 0:
            break
    else:
        pytest.skip("run by root, and nobody else may run a Python of 3.11 or newer here")
    allow_all_users(course.root)
    program = [*drop, python, "-ESs", "-m", "grader.setup"]
    done = subprocess.run(program, cwd=course.root, capture_output=True, text=True, timeout=1000)
    return done.returncode, done.stdout + done.stderr


def allow_all_users(folder: Path) -> None:
    """Give all users access to a folder that pytest created for one user."""
    for parent in folder.parents:
        if parent.stat().st_mode & 0o005 != 0o005 and parent.owner() == "root" and "pytest" in str(parent):
            os.chmod(parent, 0o755)


def test_failures_are_plain_text() -> None:
    assert str(Failure("A.", ["b"], "C.", "D.")) == "make: A.\n    b\nC.\nD."
