"""The build cache: it reuses a build that has the same source, flags, compiler and headers.

An entry is a folder named by a hash of everything that determines its contents. It is built in a temporary folder and
renamed into place when it is complete, so a partial entry is never visible, even if the build is interrupted. A lock
file names the process that builds an entry. Other processes wait while that process runs; if it has ended, they remove
the lock. If two processes build the same entry nevertheless, the second one uses the first one's entry.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import shutil
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from grader.setup.errors import GraderError

_LAYOUT = "v1"
_DEFAULT_MEGABYTES = 1024
_YOUNG_SECONDS = 600.0  # an entry used more recently is not removed: a process may be about to load it
_TRIM_SECONDS = 60.0  # time between scans for old entries: a scan at each build took a tenth of a verdict's time
_WAIT_SECONDS = 300.0  # after this time, a process stops waiting for another one and builds the entry itself
_FOREIGN_SECONDS = 900.0  # after this time, the lock of a process on another machine is ignored

Notice = Callable[[str], None]


def default_notice(text: str) -> None:
    """Print a notice on standard error."""
    print(text, file=sys.stderr, flush=True)


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

    def __init__(self, folder: Path, notice: Notice = default_notice, installed: Path | None = None) -> None:
        self.folder = folder
        self.notice = notice
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
        folder = Path(tempfile.mkdtemp(prefix=f"{key[:12]}.{'.'.join(_myself())}.", dir=self._building))
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

    # -- locks -----------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _lock(self, key: str, what: str) -> Iterator[None]:
        path = self._locks / f"{key}.lock"
        mine = f"{' '.join(_myself())}\n"
        held = self._acquire(path, mine, what)
        try:
            yield
        finally:
            if held:
                with contextlib.suppress(OSError):
                    if path.read_text() == mine:
                        path.unlink()

    def _acquire(self, path: Path, mine: str, what: str) -> bool:
        """Wait until the lock is acquired, and return True. After a timeout, return False: build without the lock."""
        began = time.monotonic()
        told = False
        while True:
            if self._create(path, mine):
                return True
            owner = _read(path)
            if owner is None:
                continue
            if not _alive(owner.split(), path):
                self._clear(path, owner)
                continue
            waited = time.monotonic() - began
            if waited > 1.0 and not told:
                told = True
                pid = owner.split()[1]
                if pid != str(os.getpid()):  # print no message if another thread of this process has the lock
                    self.notice(f"waiting for process {pid}, which is building {what} ...")
            if waited > _WAIT_SECONDS:
                self.notice(f"still not built after {waited:.0f} s: building {what} in this process as well")
                return False
            time.sleep(0.02 if waited < 1.0 else 0.1)

    def _create(self, path: Path, text: str) -> bool:
        """Create the lock file with its contents atomically; return False if it exists."""
        handle, name = tempfile.mkstemp(prefix=f"lock.{'.'.join(_myself())}.", dir=self._building)
        try:
            with os.fdopen(handle, "w") as file:
                file.write(text)
            os.link(name, path)
            return True
        except FileExistsError:
            return False
        finally:
            os.unlink(name)

    def _clear(self, path: Path, owner: str) -> None:
        """Remove the lock of a dead process, unless another process has taken it over."""
        aside = self._building / f"lock.{'.'.join(_myself())}.{time.monotonic_ns()}"
        with contextlib.suppress(OSError):
            os.rename(path, aside)
            taken = _read(aside)
            if taken is not None and taken != owner:
                # Another process than expected owns the lock, and may still be running: restore the lock. If a third
                # process has created a lock meanwhile, two processes build the entry, which is harmless.
                with contextlib.suppress(OSError):
                    os.link(aside, path)
            aside.unlink()

    # -- size ------------------------------------------------------------------------------------------------------

    def _trim(self) -> None:
        """Remove the least recently used entries until the size limit is met, and files of processes that ended."""
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
            total -= size
            _remove(entry, self._building)
        for left in self._building.iterdir():
            if not _alive(left.name.split(".")[1:4], left):
                _delete(left)
        for lock in self._locks.glob("*.lock"):
            owner = _read(lock)
            if owner is not None and not _alive(owner.split(), lock):
                self._clear(lock, owner)

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

    def size(self) -> tuple[int, int]:
        """Return the number of entries and their total bytes."""
        count = total = 0
        if self._entries.is_dir():
            for entry in self._entries.iterdir():
                count += 1
                with contextlib.suppress(OSError):
                    total += sum(f.stat().st_size for f in entry.iterdir())
        return count, total

    def remove(self, key: str) -> None:
        """Remove a finished entry, if there is one."""
        _remove(self._entries / key, self._building)

    def clear(self) -> None:
        """Remove all finished entries."""
        if self._entries.is_dir():
            for entry in list(self._entries.iterdir()):
                _remove(entry, self._building)


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
        target = aside / f"removed.{'.'.join(_myself())}.{entry.name[:12]}{time.monotonic_ns()}"
        os.rename(entry, target)
        shutil.rmtree(target, ignore_errors=True)


def _delete(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _read(path: Path) -> str | None:
    try:
        return path.read_text()
    except OSError:
        return None


def _myself() -> tuple[str, str, str]:
    """Return a hash of the machine and its pid namespace, the id of this process, and its start time.

    Together they identify the process even if several machines share the cache, such as nodes of a cluster with a
    common home folder. None of them contains a dot or a blank.
    """
    try:
        namespace = os.readlink("/proc/self/ns/pid")
    except OSError:
        namespace = ""
    place = hashlib.sha256(f"{socket.gethostname()} {namespace}".encode()).hexdigest()[:12]
    return place, str(os.getpid()), _start_time(os.getpid())


def _alive(owner: Sequence[str], path: Path) -> bool:
    """Return whether the process that owns a lock or folder still runs.

    A process on another machine is assumed to run for ``_FOREIGN_SECONDS``.
    """
    if len(owner) != 3 or not owner[1].isdigit():
        return False
    if owner[0] != _myself()[0]:
        try:
            return time.time() - path.stat().st_mtime < _FOREIGN_SECONDS
        except OSError:
            return False
    return _process_lives(int(owner[1]), owner[2])


def _process_lives(pid: int, start: str) -> bool:
    """Return whether a process with this id and start time runs. Both are compared because ids are reused."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    known = _start_time(pid)
    return known == "0" or start in ("0", known)


def _start_time(pid: int) -> str:
    """Return a process's start time in clock ticks after boot, "0" if it is unknown, "dead" for a zombie."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return "0"
    return "dead" if fields[0] in ("Z", "X") else fields[19]
