"""The watch session, with simulated events instead of a keyboard and a file system."""

from __future__ import annotations

import io
import queue
import signal
import threading
import time
from pathlib import Path

import pytest

from grader.cli.check import grade
from grader.cli.watch_loop import FOOTER, Event, Pressed, Saved, WatchLoop, _watch_files
from grader.course import Course, Entry
from grader.course.learner import pristine
from grader.course.learner.progress import ProgressFile
from grader.report import theme
from grader.verdict import Verdict
from tests.report import samples


class Watched:
    """A session with predefined events; ``text`` is its output."""

    def __init__(self, course: Course, start: str | None = None) -> None:
        self.output = io.StringIO()
        console = theme.console(self.output, width=80)
        entry = course.find(start) if start else None
        self.session = WatchLoop(course, entry, console, lambda entry: grade(entry, None, console))

    def run(self, *events: Event) -> str:
        """Run with the given events, the last of which must end the session."""
        for event in events:
            self.session.events.put(event)
        assert self.session.run() == 0
        return " ".join(self.output.getvalue().split())


def save(name: str, text: str) -> Saved:
    path = Path(f"exercises/day01_start/{name}.cu").resolve()
    path.write_text(text)
    return Saved(path)


QUIT = Pressed("q")


def test_it_grades_at_once_and_shows_the_next_exercise_at_the_end(course, judge) -> None:  # type: ignore[no-untyped-def]
    text = Watched(course).run(QUIT)
    assert judge == ["day01_start/first"]
    assert "Not passed yet" in text and "waiting for a save" in text
    assert text.endswith("0 of 2 exercises passed, 0 of 15 points. Continue with grader watch first")


def test_it_moves_on_to_the_next_exercise(course, judge) -> None:  # type: ignore[no-untyped-def]
    Path("exercises/day01_start/first.cu").write_text("// solved\n")
    watched = Watched(course)
    text = watched.run(QUIT)
    assert "Passed 10 of 10 points" in text and "On to day01_start/second" in text
    assert "Continue with grader watch second" in text
    assert judge == ["day01_start/first"]


def test_passing_the_last_exercise_ends_it_with_a_message(course, judge) -> None:  # type: ignore[no-untyped-def]
    ProgressFile(course.root).record_check("day01_start/first", passed=True)
    watched = Watched(course)
    text = watched.run(save("second", "// solved\n"))
    assert "Every exercise is passed: 2 exercises, 15 points." in text


def test_saving_another_exercise_switches_to_it(course, judge) -> None:  # type: ignore[no-untyped-def]
    Watched(course).run(save("second", "// not yet\n"), save("first", "// not yet\n"), QUIT)
    assert judge == ["day01_start/first", "day01_start/second", "day01_start/first"]


def test_the_task_is_shown_for_an_untouched_skeleton(course, judge) -> None:  # type: ignore[no-untyped-def]
    pristine.keep_copies(course)
    assert "is still the skeleton. The task: Find it. Hard, about 75 minutes. Needs first. void second(" in Watched(
        course, "second"
    ).run(QUIT)
    Path("exercises/day01_start/first.cu").write_text("// solved\n")
    assert "On to day01_start/second The second" in (text := Watched(course).run(QUIT)) and "Find it." in text


def test_keys(course, judge) -> None:  # type: ignore[no-untyped-def]
    text = Watched(course).run(Pressed("h"), Pressed("l"), Pressed("r"), Pressed("v"), Pressed("x"), QUIT)
    assert "Hint 1 of 3" in text and "a nudge" in text
    assert "A small course" in text
    assert len(judge) == 2


def test_next_skips(course, judge) -> None:  # type: ignore[no-untyped-def]
    Watched(course).run(Pressed("n"), QUIT)
    assert judge == ["day01_start/first", "day01_start/second"]


def test_an_exercise_that_already_passes_stays_open(course, judge) -> None:  # type: ignore[no-untyped-def]
    ProgressFile(course.root).record_check("day01_start/first", passed=True)
    watched = Watched(course, "first")
    Path("exercises/day01_start/first.cu").write_text("// solved\n")
    text = watched.run(QUIT)
    assert "On to" not in text and watched.session.current.name == "day01_start/first"


def test_a_deleted_file_does_not_end_it(course, judge, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    from grader.setup.errors import GraderError

    def missing(*_: object, **__: object) -> None:
        raise GraderError("there is no file first.cu", "Put it back.")

    monkeypatch.setattr("grader.judge.check", missing)
    text = Watched(course).run(QUIT)
    assert "could not grade: there is no file first.cu" in text and "Put it back." in text


class Watcher:
    """The thread that watches exercises/. A saved marker file shows that it has processed all earlier events."""

    def __init__(self, course: Course) -> None:
        self.events: queue.Queue[Event] = queue.Queue()
        self.stop = threading.Event()
        self.thread = threading.Thread(
            target=_watch_files, args=(course, lambda path: self.events.put(Saved(path)), self.stop)
        )
        self.thread.start()
        self.marks = 0
        while self.events.empty():  # the watcher does not report when it is ready, so save until an event arrives
            self._mark()
            time.sleep(0.05)
        self.seen()

    def _mark(self) -> Path:
        self.marks += 1
        path = Path(f"exercises/day01_start/mark{self.marks}.cu").resolve()
        path.write_text("// all before this has been seen\n")
        return path

    def seen(self) -> list[Event]:
        """Return the output so far, without markup."""
        last = Saved(self._mark())
        found: list[Event] = []
        while not found or found[-1] != last:
            found.append(self.events.get(timeout=60))
        return [event for event in found if not (isinstance(event, Saved) and event.path.name.startswith("mark"))]


@pytest.mark.parametrize("how", ["in place", "by renaming"])
def test_a_save_is_seen_once(course, how) -> None:  # type: ignore[no-untyped-def]
    watcher = Watcher(course)
    try:
        file = Path("exercises/day01_start/first.cu").resolve()
        if how == "in place":
            with file.open("r+") as opened:  # one change: `write_text` would first truncate the file
                opened.write("// more\n")
        else:
            new = file.with_name(".first.cu.swp")
            new.write_text("// more\n")
            new.rename(file)
        assert watcher.seen() == [Saved(file)]
        assert watcher.seen() == []
        file.with_name("notes.txt").write_text("not a kernel")
        assert watcher.seen() == []
    finally:
        watcher.stop.set()
        watcher.thread.join()


def test_a_save_stops_the_check_that_is_running(course, judge) -> None:  # type: ignore[no-untyped-def]
    watched = Watched(course)
    loop, rest = watched.session, watched.session.grade
    path = Path("exercises/day01_start/first.cu").resolve()
    loop.loaded.set()

    def last(entry: Entry) -> Verdict:
        loop.events.put(QUIT)
        return rest(entry)

    def endless(entry: Entry) -> Verdict:
        loop.grade = last
        # The file is no exercise, so the running check continues.
        loop.saved(Path("exercises/day01_start/notes.cu").resolve())
        loop.saved(path)
        while True:
            time.sleep(0.1)

    loop.grade = endless
    with loop.signals():
        text = watched.run()
    assert judge == ["day01_start/first"] and "Not passed yet" in text and not loop.grading


def test_a_save_after_the_check_stops_nothing(course, judge) -> None:  # type: ignore[no-untyped-def]
    watched = Watched(course)
    with watched.session.signals():
        signal.raise_signal(signal.SIGUSR1)
        watched.run(QUIT)


def test_a_resize_draws_again(course, judge, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    watched = Watched(course)
    watched.session.console = theme.console(watched.output, force_terminal=True, legacy_windows=False)
    monkeypatch.setenv("COLUMNS", "60")
    with watched.session.signals():
        signal.raise_signal(signal.SIGWINCH)
        watched.run(QUIT)
    assert watched.session.console.width == 60 and len(judge) == 1


@pytest.mark.parametrize("height", [12, 20, 24, 60])
def test_a_short_screen_shows_the_start_and_the_end_of_the_verdict(course, judge, monkeypatch, height) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setenv("LINES", str(height))
    monkeypatch.setenv("COLUMNS", "80")
    watched = Watched(course)
    watched.session.console = theme.console(watched.output, force_terminal=True, color_system=None)
    verdict = samples.wrong()
    watched.session._show(watched.session.current, verdict)
    shown = watched.output.getvalue().splitlines()
    assert len(shown) <= height - FOOTER
    assert verdict.title in " ".join(shown[:3]) and any("Not passed yet" in line for line in shown)
    assert any("more line" in line for line in shown) == (height < 60)
    assert any("Fast" in line for line in shown) == (height >= 20)
