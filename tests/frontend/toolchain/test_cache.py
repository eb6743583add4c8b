"""The build cache: hits, locks, leftovers of killed processes, interrupts, size limits, and read-only folders."""

import fcntl
import multiprocessing
import os
import sys
import threading
import time
from pathlib import Path

import pytest

from grader.frontend.toolchain import cache as cache_module
from grader.frontend.toolchain.cache import BuildCache, digest, open_cache
from grader.setup.errors import GraderError

KEY = digest(["a"])


@pytest.fixture
def notices() -> list[str]:
    return []


@pytest.fixture
def cache(tmp_path, notices) -> BuildCache:
    return BuildCache(tmp_path / "cache", notices.append, waiting=notices.append)


def write(folder: Path) -> None:
    (folder / "result").write_text("done")


def never(folder: Path) -> None:
    raise AssertionError("the entry was built again")


def lock_of(cache: BuildCache, key: str = KEY) -> Path:
    path = cache.folder / "v1" / "locks" / f"{key}.lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def leftovers(cache: BuildCache) -> list[Path]:
    base = cache.folder / "v1"
    return [*(base / "building").iterdir(), *(base / "locks").iterdir()]


def entries(cache: BuildCache) -> int:
    return len([*(cache.folder / "v1" / "entries").iterdir()])


def test_it_builds_once(cache):
    entry, cached = cache.get(KEY, write, "x")
    assert not cached and (entry / "result").read_text() == "done" and entry == cache.path(KEY)
    assert cache.get(KEY, never, "x") == (entry, True)
    assert leftovers(cache) == []


def test_parts_of_a_key_are_kept_apart():
    assert digest(["ab", "c"]) != digest(["a", "bc"])


def test_a_failed_build_leaves_nothing_and_is_tried_again(cache):
    def fail(folder: Path) -> None:
        write(folder)
        raise GraderError("no")

    with pytest.raises(GraderError):
        cache.get(KEY, fail, "x")
    assert cache.find(KEY) is None and leftovers(cache) == []
    assert cache.get(KEY, write, "x")[1] is False


def test_an_interrupted_build_leaves_nothing(cache):
    def interrupted(folder: Path) -> None:
        write(folder)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cache.get(KEY, interrupted, "x")
    assert cache.find(KEY) is None and leftovers(cache) == []


def test_a_lock_file_that_nobody_holds_is_no_lock(cache, notices, monkeypatch):
    """A killed process leaves its lock file. Earlier versions wrote other text into it."""

    def sleep(seconds: float) -> None:
        raise AssertionError("it waits")

    monkeypatch.setattr(cache_module.time, "sleep", sleep)
    lock_of(cache).write_text(f"0123456789ab {os.getppid()} 1\n")
    assert cache.get(KEY, write, "x")[1] is False
    assert notices == [] and leftovers(cache) == []


@pytest.mark.parametrize("seconds, stays", [(5, True), (4000, False)])
def test_an_old_folder_of_an_unfinished_build_is_removed(cache, seconds, stays):
    lock = lock_of(cache).with_name("killed.lock")
    lock.touch()
    begun = cache.folder / "v1" / "building" / f"{KEY[:12]}.abcd"
    begun.mkdir(parents=True)
    for left in (begun, lock):
        os.utime(left, times=(time.time() - seconds,) * 2)
    cache.get(KEY, write, "x")
    assert begun.exists() == lock.exists() == stays


def test_without_locks_the_entry_is_built(cache, monkeypatch):
    def flock(file: object, operation: int) -> None:
        raise OSError(37, "No locks available")

    monkeypatch.setattr(cache_module.fcntl, "flock", flock)
    assert cache.get(KEY, write, "x")[1] is False and cache.find(KEY)


def test_a_lock_of_another_user_does_not_stop_a_build(cache, monkeypatch):
    def refused(*arguments: object, **options: object) -> None:
        raise PermissionError(13, "Permission denied")

    lock_of(cache)
    monkeypatch.setattr(cache_module, "open", refused, raising=False)
    assert cache.get(KEY, write, "x")[1] is False and cache.find(KEY)


def _build_until(folder: str, started, start_command) -> None:
    def build(entry: Path) -> None:
        started.set()
        start_command.wait(60)
        write(entry)

    BuildCache(Path(folder)).get(KEY, build, "x")


def test_a_live_builder_is_waited_for_with_a_message(cache, notices):
    context = multiprocessing.get_context("spawn")
    started, start_command = context.Event(), context.Event()
    process = context.Process(target=_build_until, args=(str(cache.folder), started, start_command))
    process.start()
    assert started.wait(60)

    def hear(text: str) -> None:
        notices.append(text)
        start_command.set()

    cache.waiting = hear
    assert cache.get(KEY, never, "flash.cu")[1] is True
    process.join(60)
    assert notices == [f"waiting for process {process.pid}, which is building flash.cu ..."]
    assert leftovers(cache) == []


@pytest.mark.parametrize("terminal", [True, False])
def test_a_wait_is_reported_at_a_terminal_only(capsys, monkeypatch, terminal):
    """Check that outputs of notebooks do not depend on another process that builds the same entry."""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    cache_module.progress_notice("waiting")
    assert capsys.readouterr().err == ("waiting\n" if terminal else "")


def test_threads_wait_for_each_other_without_a_message(cache, notices):
    results = []

    def slow(folder: Path) -> None:
        time.sleep(1.3)
        write(folder)

    threads = [threading.Thread(target=lambda: results.append(cache.get(KEY, slow, "x")[1])) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert sorted(results) == [False, True] and notices == []


def test_waiting_for_a_builder_has_a_time_limit(cache, notices, monkeypatch):
    monkeypatch.setattr(cache_module, "_WAIT_SECONDS", 0.1)
    with open(lock_of(cache), "w") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        assert cache.get(KEY, write, "x")[1] is False
    assert "building x in this process as well" in notices[-1]
    assert lock_of(cache).exists()  # the lock of the other process


def _build_slowly(folder: str, started) -> None:
    def build(entry: Path) -> None:
        write(entry)
        started.set()
        time.sleep(60)

    BuildCache(Path(folder)).get(KEY, build, "x")


def test_a_killed_builder_does_not_block_the_next_build(cache):
    context = multiprocessing.get_context("spawn")
    started = context.Event()
    process = context.Process(target=_build_slowly, args=(str(cache.folder), started))
    process.start()
    assert started.wait(60)
    process.kill()
    process.join()
    folder, lock = leftovers(cache)
    assert cache.get(KEY, write, "x")[1] is False
    assert not lock.exists() and leftovers(cache) == [folder]  # the folder is removed when it is old


def _race(folder: str, seed: int, results) -> None:
    cache = BuildCache(Path(folder), lambda text: None)

    def build(entry: Path) -> None:
        (entry / "result").write_text("x" * 100000)

    for i in range(20):
        entry, _ = cache.get(digest([str(i)]), build, "x")
        results.put(len((entry / "result").read_text()) == 100000)


def test_many_processes_at_once_see_whole_entries_only(cache):
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    processes = [context.Process(target=_race, args=(str(cache.folder), i, results)) for i in range(4)]
    for process in processes:
        process.start()
    seen = [results.get(timeout=60) for _ in range(80)]
    for process in processes:
        process.join()
    assert all(seen) and entries(cache) == 20 and leftovers(cache) == []


def fill(cache: BuildCache, name: str, age: float) -> str:
    key = digest([name])
    entry, _ = cache.get(key, lambda folder: (folder / "result").write_bytes(b"x" * 400_000), name)
    then = time.time() - age
    os.utime(entry, (then, then))
    return key


@pytest.fixture
def always_looking(monkeypatch):
    """Make each build check the size limit and remove old entries."""
    monkeypatch.setattr(cache_module, "_TRIM_SECONDS", 0.0)


def test_the_size_of_the_cache_is_checked_now_and_then(cache, monkeypatch):
    monkeypatch.setenv("GRADER_CACHE_MB", "1")
    fill(cache, "old", 5000), fill(cache, "older", 9000), fill(cache, "new", 0)
    assert entries(cache) == 3
    os.utime(cache.folder / "v1/looked", (0, 0))
    fill(cache, "newer", 0)
    assert entries(cache) == 2


def test_the_least_recently_used_entries_go_when_it_is_full(cache, monkeypatch, always_looking):
    monkeypatch.setenv("GRADER_CACHE_MB", "1")
    old, older, new = fill(cache, "old", 5000), fill(cache, "older", 9000), fill(cache, "new", 0)
    assert older not in {p.name for p in (cache.folder / "v1/entries").iterdir()}
    assert cache.find(old) and cache.find(new)


def test_using_an_entry_keeps_it(cache, monkeypatch, always_looking):
    monkeypatch.setenv("GRADER_CACHE_MB", "1")
    first, second = fill(cache, "first", 9000), fill(cache, "second", 8000)
    assert cache.find(first)
    fill(cache, "third", 0)
    assert cache.find(first) and cache.find(second) is None


def test_entries_in_use_are_never_removed(cache, monkeypatch, always_looking):
    monkeypatch.setenv("GRADER_CACHE_MB", "0.1")
    keys = [fill(cache, str(i), 0) for i in range(4)]
    assert all(cache.find(key) for key in keys)


def test_a_limit_that_is_not_a_number(cache, monkeypatch):
    monkeypatch.setenv("GRADER_CACHE_MB", "much")
    with pytest.raises(GraderError, match="GRADER_CACHE_MB=much"):
        cache.get(KEY, write, "x")


def test_installed_builds_are_used(tmp_path):
    installed = BuildCache(tmp_path / "installed")
    entry, _ = installed.get(KEY, write, "x")
    cache = BuildCache(tmp_path / "cache", installed=tmp_path / "installed")
    assert cache.get(KEY, never, "x") == (entry, True) and cache.path(KEY) == entry
    other, cached = cache.get(digest(["b"]), write, "x")
    assert not cached and other.is_relative_to(tmp_path / "cache")


@pytest.fixture
def fresh(monkeypatch, tmp_path):
    monkeypatch.setattr(cache_module, "_chosen", {})
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return monkeypatch


def test_the_folder_is_named_by_the_environment(fresh, tmp_path):
    fresh.setenv("GRADER_CACHE", str(tmp_path / "mine"))
    assert open_cache().folder == tmp_path / "mine"
    fresh.delenv("GRADER_CACHE")
    fresh.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert open_cache().folder == tmp_path / "xdg" / "llm-kernels"


def test_a_folder_that_cannot_be_written_is_replaced_with_a_notice(fresh, tmp_path, notices):
    (tmp_path / "file").write_text("")
    fresh.setenv("GRADER_CACHE", str(tmp_path / "file" / "below"))
    cache = open_cache(notices.append)
    assert cache.folder == tmp_path / f"llm-kernels-{os.getuid()}"
    assert len(notices) == 1 and "is not writable" in notices[0]
    open_cache(notices.append)
    assert len(notices) == 1
    assert cache.get(KEY, write, "x")[1] is False


def test_without_any_folder_there_is_an_error(fresh, tmp_path):
    (tmp_path / "file").write_text("")
    fresh.setenv("GRADER_CACHE", str(tmp_path / "file" / "below"))
    (tmp_path / f"llm-kernels-{os.getuid()}").write_text("")
    with pytest.raises(GraderError, match="no writable folder for built kernels"):
        open_cache()


def test_a_temporary_folder_that_others_can_write_is_not_used(fresh, tmp_path):
    (tmp_path / "file").write_text("")
    fresh.setenv("GRADER_CACHE", str(tmp_path / "file" / "below"))
    shared = tmp_path / f"llm-kernels-{os.getuid()}"
    shared.mkdir()
    shared.chmod(0o777)
    with pytest.raises(GraderError, match="other users can write"):
        open_cache()


def test_a_full_disk_is_one_clear_error(cache):
    def full(folder: Path) -> None:
        raise OSError(28, "No space left on device")

    with pytest.raises(GraderError, match="no space left"):
        cache.get(KEY, full, "x")
