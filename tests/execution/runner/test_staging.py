"""Files that root copies so that the jail's unprivileged user can read them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from grader.execution.jail import staging
from grader.execution.runner import tiers
from grader.frontend.toolchain.cache import cache_folder
from tests.attacks.conftest import HERE as ATTACKS

CHECKS = """
import sys
from pathlib import Path
from grader.execution.jail import staging
from grader.judge import check
from tests.attacks.conftest import exercise

verdict = check(exercise(), Path(sys.argv[1]))
print(staging.drops_root(), verdict.passed, verdict.isolation)
"""


@pytest.mark.skipif(not staging.drops_root(), reason="only root copies files for the jail's user")
def test_a_folder_is_copied_again_only_when_a_file_in_it_changed(tmp_path: Path) -> None:
    """A folder's modification time does not count: the build cache changes it to mark an entry as used."""
    folder = tmp_path / "entry"
    folder.mkdir()
    tmp_path.chmod(0o700)  # not readable by other users
    file = folder / "file"
    file.write_text("one")
    os.utime(file, ns=(0, 10**9))
    first = staging.reachable(folder)
    assert first != folder and (first / "file").read_text() == "one"
    os.utime(folder, ns=(0, 5 * 10**9))
    assert staging.reachable(folder) == first
    file.write_text("two")
    os.utime(file, ns=(0, 2 * 10**9))
    second = staging.reachable(folder)
    assert second != first and (second / "file").read_text() == "two"


@pytest.mark.skipif(not staging.drops_root(), reason="only root copies files for the jail's user")
def test_a_file_behind_a_link_in_a_closed_folder_is_copied(tmp_path: Path) -> None:
    folder = staging.scratch_folder()
    folder.chmod(0o755)
    file = folder / "file"
    file.write_text("one")
    (tmp_path / "link").symlink_to(folder)
    tmp_path.chmod(0o700)
    linked = tmp_path / "link" / "file"
    assert staging.reachable(file) == file
    assert staging.reachable(linked) != linked and staging.reachable(linked).read_text() == "one"


def test_folders_of_dead_processes_are_removed_except_in_other_containers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Remove the folders of dead processes, but not the locked folder of a process in a container that shares /tmp."""
    monkeypatch.setattr(staging.tempfile, "tempdir", str(tmp_path))
    unused = 2**22 + 1  # no process has this id
    dead, elsewhere = tmp_path / f"grader-jail-{unused}.dead", tmp_path / f"grader-jail-{unused}.elsewhere"
    alive = tmp_path / f"grader-jail-{os.getpid()}.alive"
    for folder in (dead, elsewhere, alive):
        folder.mkdir()
    held = staging._locked(elsewhere)
    try:
        mine = staging.own_folder.__wrapped__()
        with pytest.raises(BlockingIOError):
            staging._locked(mine)
    finally:
        os.close(held)
    assert sorted(tmp_path.iterdir()) == sorted([elsewhere, alive, mine])


@pytest.mark.parametrize(
    "alone", [["unshare", "--map-root-user"], ["setpriv", "--bounding-set=-all"]], ids=["only user", "no rights"]
)
def test_a_root_that_cannot_switch_users_is_confined(alone: list[str], tmp_path: Path) -> None:
    """Check root in a namespace that has no other user, and in a container without the capability to switch users.

    Compilers and kernels still run in a jail.
    """
    if missing := tiers.why_not("landlock"):
        pytest.skip(f"the tier landlock is not available: {missing}")
    try:
        cache_folder().mkdir(parents=True, exist_ok=True)
        subprocess.run([*alone, "test", "-w", str(cache_folder())], check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"{alone[0]} does not work here: {getattr(error, 'stderr', '') or error}")
    file = tmp_path / "twice.cu"
    file.write_text("".join((ATTACKS / part).read_text() for part in ("prelude.cu", "controls/honest.cu")))
    environment = {name: value for name, value in os.environ.items() if name != "GRADER_JAIL"}
    argv = [*alone, sys.executable, "-c", CHECKS, str(file)]
    done = subprocess.run(argv, env=environment, capture_output=True, text=True, check=False)
    assert done.stdout in ("False True bwrap\n", "False True landlock\n"), done.stdout + done.stderr
