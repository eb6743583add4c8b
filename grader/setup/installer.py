"""Runs pip and uv. Their output goes to a log; the display shows their progress."""

from __future__ import annotations

import contextlib
import os
import re
import select
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from grader.setup.display import Display, megabytes
from grader.setup.failures import explained
from grader.setup.state import Folder

_LARGE = 10_000_000  # if the display is a log, larger downloads get a line
_MANY = 10  # if the display is a log, an installation of this many packages gets a line for each quarter
_TICK_SECONDS = 0.5
_PATIENCE_SECONDS = 10.0  # time for a program to end after a signal
_UNWANTED = ("PYTHONHOME", "PYTHONPATH", "PIP_TARGET", "PIP_PREFIX", "PIP_ROOT", "PIP_QUIET", "PIP_VERBOSE", "PIP_LOG")
_DOWNLOADING = re.compile(r"\s*Downloading (\S+)(?: \(([\d.]+) ([kMG]?B)\))?$")
_PROGRESS = re.compile(r"Progress (\d+) of (\d+)$")
_UNITS = {"B": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9}
# Matches the line that pip ("Installing collected packages", "Attempting uninstall") or uv (the other patterns) prints
# before it changes the first package.
_CHANGING = re.compile(
    r"\s*(Installing collected packages|Attempting uninstall|Prepared \d|Uninstalled \d|Installed \d)"
)


class Installer:
    """A runner of programs that install into a .venv. ``lock``: an open lock file that each program inherits."""

    def __init__(self, folder: Folder, display: Display, lock: int | None = None):
        self.folder = folder
        self.display = display
        self.downloaded = 0.0  # the bytes of all complete downloads
        self.changed = False  # True if installed packages may have changed
        self._lock = lock
        self._title = ""
        self._current = ("", 0.0, 0.0)  # the current download: name, bytes so far, total bytes
        self._to_install = 0
        self._installed_before = 0
        self._quarters = 0  # the quarters of the packages that a line in the log has counted

    def run(self, command: Sequence[str | Path], title: str) -> list[str]:
        """Run a program to its end and return the lines that it printed; raise ``Failure`` if it fails."""
        self._title, self._current, self._to_install = title, ("", 0.0, 0.0), 0
        self.display.now(title)
        self.folder.scratch.mkdir(parents=True, exist_ok=True)
        output: list[str] = []
        with self.folder.log.open("a", encoding="utf-8") as log:
            print("$", *command, file=log, flush=True)
            with self._started(command) as process:
                assert process.stdout
                for line in _lines(process.stdout.fileno()):
                    if line is not None and not _PROGRESS.match(line):
                        output.append(line)
                        print(line, file=log, flush=True)
                    self._follow(line)
                code = process.wait()
        if code != 0:
            if code < 0:
                output.append(f"The program was ended by {signal.Signals(-code).name}.")
            raise explained(f"{title} failed.", output, self.changed)
        return output

    @contextlib.contextmanager
    def _started(self, command: Sequence[str | Path]) -> Iterator[subprocess.Popen[bytes]]:
        """Run a program in its own session, so that Ctrl-C reaches only this process, which then ends the program."""
        process = subprocess.Popen(
            [str(part) for part in command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=self._environment(),
            cwd=self.folder.course,
            pass_fds=[] if self._lock is None else [self._lock],
            start_new_session=True,
        )
        try:
            yield process
        finally:
            if process.poll() is None:
                self._end(process)
            if process.stdout:
                process.stdout.close()

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        """End a program and its children, and read the rest of its output."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                rest, _ = process.communicate(timeout=_PATIENCE_SECONDS)
                for line in (rest or b"").decode(errors="replace").splitlines():
                    self.changed = self.changed or bool(_CHANGING.match(line))
                return

    def _environment(self) -> dict[str, str]:
        """Return the environment for pip and uv: no settings that move packages; temporary files go into .venv."""
        kept = {name: value for name, value in os.environ.items() if name not in _UNWANTED}
        return kept | {
            "TMPDIR": str(self.folder.scratch),
            "PIP_USER": "0",
            "PYTHONUNBUFFERED": "1",
            "PYTHONSAFEPATH": "1",
        }

    def _follow(self, line: str | None) -> None:
        """Show the progress that a line of output means. None: the program printed nothing for a while."""
        if line is None:
            self._show()
        elif progress := _PROGRESS.match(line):
            so_far, total = map(float, progress.groups())
            self._current = (self._current[0], so_far, total)
            self._show()
        elif (begun := _DOWNLOADING.match(line)) and not begun[1].endswith(".metadata"):
            self._finish_download()
            size = float(begun[2]) * _UNITS[begun[3]] if begun[2] else 0.0
            self._current = (_name_and_version(begun[1]), 0.0, size)
            if size >= _LARGE and not self.display.live:
                self.display.say(f"  downloading {self._current[0]} ({megabytes(size)})")
        elif _CHANGING.match(line):
            self.changed = True
            self._finish_download()
            self._to_install, self._installed_before = line.count(",") + 1, self._installed()
            self._quarters = 0
            if not self.display.live and self._to_install >= _MANY:
                self.display.say(f"  installing {self._to_install} packages")
        elif "Retrying (Retry(" in line:
            self.display.now(f"{self._title}: no answer, trying again")
        elif collecting := re.match(r"(?:Collecting|Processing) (\S+)", line):
            self._finish_download()
            self.display.now(f"{self._title}: looking up {_name_and_version(collecting[1])}")

    def _finish_download(self) -> None:
        self.downloaded += self._current[2]
        self._current = ("", 0.0, 0.0)

    def _show(self) -> None:
        name, so_far, total = self._current
        if name and total:
            all_of_it = megabytes(self.downloaded + so_far)
            self.display.now(f"{self._title}: {name}, {megabytes(so_far)} of {megabytes(total)} ({all_of_it} in all)")
        elif self._to_install > 1:
            self._count_packages()
        else:
            arrived = _bytes_below(self.folder.scratch)
            self.display.now(f"{self._title}: {megabytes(arrived)}" if arrived >= _LARGE else self._title)

    def _count_packages(self) -> None:
        """Show the number of packages installed so far; in a log, at each quarter of them."""
        done = min(self._to_install, self._installed() - self._installed_before)
        count = f"installed {done} of {self._to_install} packages"
        self.display.now(f"{self._title}: {count}")
        quarters = 4 * done // self._to_install
        if not self.display.live and self._to_install >= _MANY and quarters > self._quarters:
            self._quarters = quarters
            self.display.say(f"  {count}")

    def _installed(self) -> int:
        """Return the number of installed packages, counted by their INSTALLER files, which pip writes last."""
        return sum(1 for _ in self.folder.path.glob("lib/python3*/site-packages/*.dist-info/INSTALLER"))


def _lines(stream: int) -> Iterator[str | None]:
    """Yield the lines of a program as they arrive, and None whenever it prints nothing for half a second."""
    begun = b""
    while True:
        if not select.select([stream], [], [], _TICK_SECONDS)[0]:
            yield None
            continue
        piece = os.read(stream, 65536)
        *whole, begun = (begun + piece).split(b"\n")
        for line in whole:
            yield line.decode(errors="replace").rstrip("\r")
        if not piece:
            if begun:
                yield begun.decode(errors="replace")
            return


def _name_and_version(requirement: str) -> str:
    """Return "numpy 2.4.6" for numpy-2.4.6-cp312-cp312-linux_x86_64.whl. Return anything but a wheel unchanged."""
    name = os.path.basename(requirement)
    return " ".join(name.split("-")[:2]) if name.endswith(".whl") else name


def _bytes_below(folder: Path) -> int:
    """Return the allocated bytes on the disk, because pip sets a file's full size before the data arrives."""
    used = 0
    for place, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                used += os.lstat(os.path.join(place, name)).st_blocks * 512
    return used


def seconds_since(begun: float) -> str:
    """Format the time since ``begun``."""
    seconds = time.monotonic() - begun
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
