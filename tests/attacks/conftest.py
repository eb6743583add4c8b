"""A cheap exercise, and a fixture that grades one attack in each isolation tier."""

from __future__ import annotations

import contextlib
import os
import re
import socket
import tempfile
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from grader.course import course_root
from grader.course.task import Bar, Case, Exercise, between
from grader.execution.jail import compiling, imports
from grader.execution.runner import client, tiers
from grader.execution.submission_sandbox import compiler_conditions, instrumentation_bypass
from grader.frontend.toolchain.cache import cache_folder
from grader.judge import check
from grader.verdict import Verdict
from tests.seeds import SEED
from tests.twice import twice

HERE = Path(__file__).parent
SECRET = "somebody_elses_work"

REACHES_OUTSIDE = [
    "become_another_program",
    "become_root",
    "change_rights",
    "connect_tcp",
    "connect_udp",
    "delete_other_submission",
    "fork",
    "limit_the_parent",
    "link_files",
    "memory_file",
    "mount",
    "move_the_parent",
    "poison_the_cache",
    "read_other_submission",
    "read_parent",
    "read_passwords",
    "read_solution",
    "read_tasks",
    "shell",
    "signal_all",
    "signal_parent",
    "spawn",
    "take_the_parents_file",
    "talk_to_a_service",
    "trace_parent",
    "user_namespace",
    "write_file",
]
"""The attacks in ``run`` that target files, networks, processes or the grader."""

EXPECTS_REFUSAL = "// Expected: the build is refused."
"""The comment line of an attack that the grader refuses to build because of its source text or symbols."""

EXPECTS_TIME_LIMIT = "// Expected: the time limit stops it."
"""The comment line of an attack that never ends. It gets SHORT_SECONDS."""

LAUNCHER = '\nextern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) { %s }\n'
"""The launcher of an attack whose file has none. It launches the file's function ``kernel``, or calls ``reward``."""
KERNEL_LAUNCH = "if (n > 0) kernel<<<(n + 63) / 64, 64, 0, stream>>>(x, out, n);"
REWARD = "reward(x, out, n, stream);"

SHORT_SECONDS = 0.5
LONG_SECONDS = 20.0
"""The time limit of all other files: on a slow machine, a few milliseconds of work can take a second."""

Judge = Callable[[Path], Verdict]

JAILS = ("bwrap", "landlock")
in_one_jail = pytest.mark.parametrize("tier", ["any"], indirect=True)
"""Marks a test whose result does not depend on the jail, so that one jail is enough."""

_why_not: dict[str, str] = {}


def exercise(timeout: float = LONG_SECONDS) -> Exercise:
    """Return an exercise whose task is out = 2 x."""
    return twice(
        cases=[Case("some", n=100), Case("any", n=between(65, 200))],
        efficient=Case("counted", n=512),
        bars=[Bar("global_bytes / minimum", at_most=1.1), Bar("launches", at_most=1)],
        timeout=timeout,
    )


def why_not(tier: str) -> str:
    """Return the reason why a jail does not work on this machine, or an empty string."""
    if tier not in _why_not:
        _why_not[tier] = tiers.why_not(tier)
    return _why_not[tier]


@pytest.fixture(params=JAILS)
def tier(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return each isolation tier with a jail, or ``any`` of them. Skip those that do not work here, with the reason."""
    wanted = JAILS if request.param == "any" else (request.param,)
    name = next((jail for jail in wanted if not why_not(jail)), "")
    if not name:
        pytest.skip(f"the isolation tier {wanted[-1]} is not available: {why_not(wanted[-1])}")
    monkeypatch.setenv("GRADER_JAIL", name)
    return name


@pytest.fixture(scope="session")
def places() -> Iterator[dict[str, str]]:
    """Return the paths that attacks try to reach, by the placeholder that attack files contain."""
    with wanted_places() as found:
        yield found


@contextlib.contextmanager
def wanted_places() -> Iterator[dict[str, str]]:
    """Create the files that attacks try to reach. Yield their paths, by the placeholder that attack files contain."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.chmod(folder, 0o777)
        other = folder / "other.cu"
        other.write_text(f"int {SECRET} = ;\n" * 20)
        os.chmod(other, 0o644)
        service = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        service.bind(f"{name}/service")
        os.chmod(f"{name}/service", 0o777)
        root = course_root()
        torch = find_spec("torch")
        yield {
            "@COURSE@": str(root),
            "@SOLUTION@": str(root / "solutions/day01_residual_add/residual_add.cu"),
            "@OTHER@": str(other),
            "@FOLDER@": str(folder),
            "@CACHE@": str(cache_folder()),
            "@TORCH@": str(Path(torch.origin or "").parent / "lib/libtorch_cpu.so") if torch else "libtorch_cpu.so",
        }
        service.close()


@pytest.fixture
def judged(tier: str, places: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Judge:
    """Return a function that grades a kernel of these tests.

    For an attack, the function turns off the checks that refuse a submission before it runs, so the jail alone must
    stop the attack. The checks stay on for honest kernels, and for attacks with EXPECTS_REFUSAL, which they must
    refuse.
    """
    monkeypatch.setenv("GRADER_TEST_SECRET", "secret")

    def judge(file: Path) -> Verdict:
        text = file.read_text()
        timeout = SHORT_SECONDS if EXPECTS_TIME_LIMIT in text.splitlines() else LONG_SECONDS
        monkeypatch.setattr(client, "LOADING_SECONDS", timeout)
        if file.parent.name == "compile":  # lower the compile timeout: some attacks loop forever
            monkeypatch.setattr(compiling, "SECONDS", 2.0)
        if file.parent.name != "honest" and EXPECTS_REFUSAL not in text.splitlines():
            monkeypatch.setattr(imports, "refused", lambda library, libsim: [])
            monkeypatch.setattr(instrumentation_bypass, "unchecked_word", lambda plan, run: "")
            monkeypatch.setattr(instrumentation_bypass, "renumbers_lines", lambda text: False)
            monkeypatch.setattr(compiler_conditions, "differing_name", lambda source, include_dirs: "")
        for word, place in places.items():
            text = text.replace(word, place)
        if "void twice(" not in text:
            text += LAUNCHER % (KERNEL_LAUNCH if re.search(r"\bkernel\(", text) else REWARD)
        whole = tmp_path / "twice.cu"
        whole.write_text((HERE / "prelude.cu").read_text() + text)
        return check(exercise(timeout), whole, seed=SEED)

    return judge
