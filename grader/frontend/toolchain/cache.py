"""The build cache: it reuses a build that has the same source, flags, compiler and headers.

An entry is a folder named by a hash of everything that determines its contents. It is built in a temporary folder and
renamed into place when it is complete, so a partial entry is never visible, even if the build is interrupted. While a
process builds an entry, it holds a lock (flock), and other processes wait. The system releases the lock when the
process ends. If two processes build the same entry nevertheless, the second one uses the first one's entry.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TextIO

from grader.setup.errors import GraderError

_LAYOUT = "v1"
_DEFAULT_MEGABYTES = 1024
_YOUNG_SECONDS = 600.0  # an entry used more recently is not removed: a process may be about to load it
_TRIM_SECONDS = 60.0  # time between scans for old entries: a scan at each build took a tenth of a verdict's time
_WAIT_SECONDS = 300.0  # after this time, a process stops waiting for another one and builds the entry itself
_LEFT_SECONDS = 3600.0  # after this time, the folder of an unfinished build is a leftover of a process that was killed

Notice = Callable[[str], None]


def default_notice(text: str) -> None:
    """Print a notice on standard error."""
    print(text, file=sys.stderr, flush=True)


def progress_notice(text: str) -> None:
    """Print a notice that matters only during a wait, if standard error is a terminal.

    In a notebook or a log, the notice would become part of the outputs.
    """
    if sys.stderr.isatty():
        default_notice(text)


def digest(parts: Iterable[str | bytes]) -> str:
    """Return a hash of several texts. Moving a character from one text to the next changes the hash."""
    total = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        total.update(len(data).to_bytes(8, "little"))
        total.update(data)
    return total.hexdigest()[:32]


def digest_folder(folders: Iterable[Path], patterns: Iterable[str] = ("*",)) -> str:
    """Return a hash of the names and contents of all files below some folders."""
    parts: list[str | bytes] = []
    for folder in folders:
        files = {path for pattern in patterns for path in folder.rglob(pattern) if path.is_file()}
        for path in sorted(files):
            parts += [path.relative_to(folder).as_posix(), path.read_bytes()]
    return digest(parts)


def cache_folder() -> Path:
    """Return the preferred cache folder: ``$GRADER_CACHE``, else ``llm-kernels`` in the user's cache folder."""
    override = os.environ.get("GRADER_CACHE")
    if override:
        return Path(override).expanduser()
    base = os.environ.get("XDG_CACHE_HOME")
    return Path(base).expanduser() / "llm-kernels" if base else Path("~/.cache/llm-kernels").expanduser()


def installed_folder() -> Path:
    """Return the folder, below Python's prefix, with the libraries that were built when the grader was installed."""
    return Path(sys.prefix) / "share" / "llm-kernels"


_chosen: dict[Path, BuildCache] = {}


def open_cache(notice: Notice = default_notice) -> BuildCache:
    """Return the cache in the preferred folder. If that is not writable, use a temporary folder and print a notice."""
    wanted = cache_folder()
    if wanted in _chosen:
        return _chosen[wanted]
    problem = _unwritable(wanted)
    folder = wanted
    if problem:
        folder = Path(tempfile.gettempdir()) / f"llm-kernels-{os.getuid()}"
        second = _unwritable(folder) or _not_ours(folder)
        if second:
            raise GraderError(
                f"there is no writable folder for built kernels: {wanted} ({problem}), {folder} ({second})",
                "Set GRADER_CACHE to a folder that you can write.",
            )
        notice(f"note: {wanted} is not writable ({problem}); built kernels are kept in {folder} instead")
    _chosen[wanted] = BuildCache(folder, notice, installed_folder())
    return _chosen[wanted]


def _unwritable(folder: Path) -> str:
    """Return the reason why a folder is not writable, or an empty string."""
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with tempfile.TemporaryFile(dir=folder):
            return ""
    except OSError as problem:
        return problem.strerror or str(problem)


def _not_ours(folder: Path) -> str:
    """Return the reason why libraries in a shared folder must not be loaded, or an empty string."""
    status = folder.lstat()
    if status.st_uid != os.getuid() or folder.is_symlink() or status.st_mode & 0o022:
        return "it belongs to another user, or other users can write to it"
    return ""


class BuildCache:
    """A folder of finished builds.

    ``installed`` is a second folder with entries that were built at installation. It is read, but never written.
    """

    def __init__(
        self,
        folder: Path,
        notice: Notice = default_notice,
        installed: Path | None = None,
        waiting: Notice = progress_notice,
    ) -> None:
        self.folder = folder
        self.notice, self.waiting = notice, waiting
        self._installed = installed / _LAYOUT / "entries" if installed else None
        self._entries = folder / _LAYOUT / "entries"
        self._locks = folder / _LAYOUT / "locks"
        self._building = folder / _LAYOUT / "building"

    def path(self, key: str) -> Path:
        """Return the path that an entry has or will have: a library may be linked to one that is not built yet."""
        if self._installed and (self._installed / key).is_dir():
            return self._installed / key
        return self._entries / key

    def find(self, key: str) -> Path | None:
        """Return the path of a finished entry, and record that it was used now; None if there is no such entry."""
        entry = self.path(key)
        try:
            os.utime(entry)
        except OSError:
            return entry if entry.is_dir() else None
        return entry

    def get(self, key: str, build: Callable[[Path], None], what: str) -> tuple[Path, bool]:
        """Return the path of an entry and whether it existed. If it did not, ``build(folder)`` creates its contents.

        ``what`` names the entry in messages, such as "flash_attention.cu for the simulator".
        """
        entry = self.find(key)
        if entry:
            return entry, True
        try:
            for folder in (self._entries, self._locks, self._building):
                folder.mkdir(parents=True, exist_ok=True)
            with self._lock(key, what):
                entry = self.find(key)
                if entry:
                    return entry, True
                return self._build(key, build), False
        except OSError as problem:
            if problem.errno in (errno.ENOSPC, errno.EDQUOT):
                raise GraderError(
                    f"there is no space left for built kernels in {self.folder}",
                    "Free some space, or set GRADER_CACHE to another folder.",
                ) from None
            if problem.errno in (errno.EACCES, errno.EROFS, errno.EPERM):
                raise GraderError(
                    f"the folder for built kernels is not writable: {problem.filename or self.folder}",
                    "Make the folder writable, or set GRADER_CACHE to another folder.",
                ) from None
            raise

    def _build(self, key: str, build: Callable[[Path], None]) -> Path:
        folder = Path(tempfile.mkdtemp(prefix=f"{key[:12]}.", dir=self._building))
        try:
            build(folder)
            entry = self.path(key)
            try:
                os.chmod(folder, 0o755)
                os.rename(folder, entry)
            except OSError as problem:
                if problem.errno not in (errno.EEXIST, errno.ENOTEMPTY):
                    raise
                # Another process has finished the same entry: use that one.
            self._trim()
            return entry
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    @contextlib.contextmanager
    def _lock(self, key: str, what: str) -> Iterator[None]:
        """Hold the lock of an entry. After a timeout, go on without it."""
        path = self._locks / f"{key}.lock"
        try:
            file = open(path, "a+", encoding="ascii")  # noqa: SIM115
        except PermissionError:  # a process of another user left it
            yield
            return
        with file:
            if self._acquire(file, what):
                file.truncate(0)
                print(os.getpid(), file=file, flush=True)
                try:
                    yield
                finally:
                    if os.fstat(
                        file.fileno()
                    ).st_nlink:  # else this is a file of an earlier holder, and path another one
                        path.unlink(missing_ok=True)
                    fcntl.flock(file, fcntl.LOCK_UN)  # closing is not enough if a forked process has a copy of the file
            else:
                yield

    def _acquire(self, file: TextIO, what: str) -> bool:
        """Wait until a lock file is locked, and return True; False after a timeout, or without locks."""
        began = time.monotonic()
        told = False
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return True
            except BlockingIOError:
                pass
            except OSError:  # the file system has no locks
                return False
            waited = time.monotonic() - began
            if waited > 1.0 and not told:
                told = True
                file.seek(0)
                pid = file.read().strip()
                if pid != str(os.getpid()):  # print no message if another thread of this process has the lock
                    self.waiting(f"waiting for process {pid}, which is building {what} ...")
            if waited > _WAIT_SECONDS:
                self.notice(f"still not built after {waited:.0f} s: building {what} in this process as well")
                return False
            time.sleep(0.02 if waited < 1.0 else 0.1)

    def _trim(self) -> None:
        """Remove the least recently used entries until the size limit is met, and leftovers of killed processes."""
        limit = _limit_bytes()
        now = time.time()
        if not self._due(now):
            return
        entries = []
        for entry in self._entries.iterdir():
            with contextlib.suppress(OSError):
                size = sum(f.stat().st_size for f in entry.iterdir())
                entries.append((entry.stat().st_mtime, size, entry))
        total = sum(size for _, size, _ in entries)
        for used, size, entry in sorted(entries, key=lambda e: e[0]):
            if total <= limit or now - used < _YOUNG_SECONDS:
                break
            with contextlib.suppress(OSError):
                if entry.stat().st_mtime == used:  # not used again since the scan
                    total -= size
                    _remove(entry, self._building)
        for left in (*self._building.iterdir(), *self._locks.iterdir()):
            with contextlib.suppress(OSError):
                if now - left.stat().st_mtime > _LEFT_SECONDS:
                    shutil.rmtree(left) if left.is_dir() else left.unlink()

    def _due(self, now: float) -> bool:
        """Return whether the last scan was long enough ago. If so, record that one takes place now."""
        looked = self._building.parent / "looked"
        try:
            due = not 0 <= now - looked.stat().st_mtime < _TRIM_SECONDS
        except OSError:
            due = True
        if due:
            looked.touch()
        return due

    def remove(self, key: str) -> None:
        """Remove a finished entry, if there is one."""
        _remove(self._entries / key, self._building)


def _limit_bytes() -> int:
    text = os.environ.get("GRADER_CACHE_MB", "")
    try:
        megabytes = float(text) if text else _DEFAULT_MEGABYTES
    except ValueError:
        raise GraderError(
            f"GRADER_CACHE_MB={text} is not a number",
            "Set GRADER_CACHE_MB to the maximum size of the build cache in MB.",
        ) from None
    return int(megabytes * 1e6)


def _remove(entry: Path, aside: Path) -> None:
    """Remove an entry atomically, so that other processes never see half of it."""
    with contextlib.suppress(OSError):
        aside.mkdir(parents=True, exist_ok=True)
        target = Path(tempfile.mkdtemp(prefix="removed.", dir=aside))
        try:
            os.rename(entry, target / "entry")
        finally:
            shutil.rmtree(target, ignore_errors=True)
