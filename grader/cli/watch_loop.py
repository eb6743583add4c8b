"""The loop of ``grader watch``: grades an exercise at every save, and continues with the next one.

It is one process, so torch is loaded once, while the first kernel compiles. The file system, the keyboard and the end
of a check feed one queue of events, which the loop handles one at a time.
"""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console, Group, RenderableType
from rich.rule import Rule
from rich.segment import Segment
from rich.text import Text

from grader.cli import hint
from grader.cli.check import first_task, grade, load_torch, record, solution_step
from grader.cli.list_exercises import next_exercise, print_list, standing
from grader.cli.messages import short_name, shortened, shown_path
from grader.course import Course, Entry
from grader.course.learner import pristine
from grader.course.learner.progress import ProgressFile
from grader.course.manifest import SUFFIXES
from grader.judge.options import CheckOptions
from grader.report import theme
from grader.report.failures import indented, paragraph
from grader.report.task_view import render_task
from grader.report.terminal import NextStep, ascii_only, closing, print_verdict, render
from grader.setup.errors import GraderError
from grader.verdict import Verdict, words

KEYS = (
    ("h", "hint"),
    ("l", "list"),
    ("r", "run again"),
    ("v", "everything"),
    ("n", "next"),
    ("q", "quit"),
)


@dataclass(frozen=True)
class Saved:
    """The event of a saved file: an exercise's file or a tasks.py."""

    path: Path


@dataclass(frozen=True)
class Pressed:
    """The event of a pressed key."""

    key: str


@dataclass(frozen=True)
class Resized:
    """The event of a changed terminal size."""


class Stopped(BaseException):
    """An exception that stops a check, because the graded file was saved again."""


Event = Saved | Pressed | Resized
Lines = list[list[Segment]]
FOOTER, FEWEST = 4, 7
"""The number of lines reserved below a verdict, and the minimum number of lines for a verdict."""
Grade = Callable[[Entry], Verdict]


def watch(course: Course, start: Entry | None, device: str = "cpu") -> int:
    """Watch the exercises until the learner quits or all are passed. Return the exit code."""
    console = theme.console()
    options = CheckOptions(device=device, times="renew")
    loop = WatchLoop(course, start, console, lambda entry: grade(entry, None, console, options))
    if loop.current is None:
        loop.print_finished()
        return 0
    load_torch(loop.loaded.set)
    pristine.keep_copies(course)
    stop = threading.Event()
    threading.Thread(target=_watch_files, args=(course, loop.saved, stop), daemon=True).start()
    try:
        with loop.signals(), keyboard(loop):
            return loop.run()
    except KeyboardInterrupt:
        loop.print_goodbye()
        sys.stdout.flush()
        # A normal exit would wait for the threads of an interrupted check.
        os._exit(0)
    finally:
        stop.set()


class WatchLoop:
    """The state of ``grader watch``, such as the current exercise, and the handlers of its events."""

    def __init__(self, course: Course, start: Entry | None, console: Console, grade: Grade) -> None:
        self.course = course
        self.console = console
        self.grade = grade
        self.events: queue.SimpleQueue[Event] = queue.SimpleQueue()
        self.progress = ProgressFile(course.root)
        self.current = start or next_exercise(course, self.progress.read())
        self.grading = False
        self.loaded = threading.Event()
        """An event that is set when torch has been imported.

        Until then, saving a file does not stop a check, because an interrupted import of torch cannot be repeated.
        """
        self.last: tuple[Entry, Verdict] | None = None
        """The exercise and verdict on the screen."""

    def run(self) -> int:
        """Grade once, then handle events until the end."""
        keep = self.current is not None and self.progress.read().of(self.current.name).passed
        if not self.check(stay=keep):
            return 0
        while True:
            event = self.events.get()
            if isinstance(event, Saved):
                entry = self._entry_of(event.path)
                if entry is not None:
                    self.current = entry
                    if not self.check():
                        return 0
            elif isinstance(event, Resized):
                if self.last is not None and self.events.empty():
                    self._show(*self.last)
                    self.print_footer()
            elif not self._key(event.key):
                return 0

    def saved(self, path: Path) -> None:
        """Queue the event of a saved file, and stop a running check. Callable from any thread."""
        self.events.put(Saved(path))
        if self.grading and self.loaded.is_set() and self._entry_of(path) is not None:
            signal.pthread_kill(_main_thread(), signal.SIGUSR1)

    @contextlib.contextmanager
    def signals(self) -> Iterator[None]:
        """Handle signals in this context: a save stops a check, and a new terminal size is an event."""

        def stop(*_: object) -> None:
            if self.grading:
                raise Stopped

        before = {
            signal.SIGUSR1: signal.signal(signal.SIGUSR1, stop),
            signal.SIGWINCH: signal.signal(signal.SIGWINCH, lambda *_: self.events.put(Resized())),
        }
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _entry_of(self, path: Path) -> Entry | None:
        """Return the exercise that a saved file belongs to; a tasks.py may belong to the current exercise."""
        for entry in (*self.course.exercises, *self.course.drafts):
            if path == entry.skeleton.resolve():
                return entry
        if self.current is not None and path == self.current.tasks.resolve():
            return self.current
        return None

    def _key(self, key: str) -> bool:
        """Handle a key; return False to end the loop."""
        if key in ("q", "Q", "\x04"):
            self.print_goodbye()
            return False
        if key in ("r", "R"):
            return self.check(stay=True)
        if key in ("h", "H") and self.current is not None:
            try:
                hint.show_next(self.course, self.current, again="h", console=self.console)
            except GraderError as error:
                self.console.print(Text(f"  {error.message}. {error.hint}", style="warn"))
            self.print_footer()
        elif key in ("l", "L"):
            self._clear()
            print_list(Course(self.course.root), self.progress.read(), with_next=False, console=self.console)
            self.print_footer()
        elif key in ("v", "V") and self.last is not None:
            self._show(*self.last, verbose=True)
            self.print_footer()
        elif key in ("n", "N"):
            following = next_exercise(self.course, self.progress.read(), self.current)
            if following is not None:
                self.current = following
                return self.check(stay=True)
        elif key == "?":
            self.print_footer()
        return True

    def check(self, stay: bool = False) -> bool:
        """Grade the current exercise and show the verdict; continue with the next if it passed, unless ``stay``.

        Return False if all exercises are passed.
        """
        assert self.current is not None
        entry = self.current
        self.console.print(Text(f"\n  {shown_path(entry.skeleton)}", style="quiet"))
        verdict = self._graded(entry)
        if verdict is None:
            return True  # a save stopped the check; its event is in the queue
        if isinstance(verdict, GraderError):
            self._clear()
            self.console.print()
            self.console.print(indented(Text.assemble(("could not grade: ", "bad.title"), verdict.message)))
            if verdict.hint:
                self.console.print(paragraph(verdict.hint))
            self.console.print()
            self.print_footer()
            return True
        record(self.course, entry, verdict)
        self._show(entry, verdict)
        if verdict.passed and not stay:
            following = next_exercise(self.course, self.progress.read(), entry)
            if following is None:
                self.print_finished()
                return False
            self.current = following
            self._print_moved_on(following)
        self.print_footer()
        return True

    def _graded(self, entry: Entry) -> Verdict | GraderError | None:
        """Grade an exercise. Return the verdict or the error; None if a save stopped the check."""
        try:
            self.grading = True
            try:
                return self.grade(entry)
            except GraderError as error:
                return error
            finally:
                self.grading = False
        except Stopped:
            self.grading = False
            return None

    def _show(self, entry: Entry, verdict: Verdict, verbose: bool = False) -> None:
        self.last = (entry, verdict)
        self._clear()
        # ``grader watch`` itself grades and shows hints.
        steps = [solution_step(self.course, entry)] if verdict.passed else []
        if verbose:
            print_verdict(verdict, self.console, verbose, steps)
            return
        task = () if verdict.passed or not pristine.untouched(self.course, entry) else (first_task(entry),)
        lines = self._lines(*task)
        room = self.console.size.height - FOOTER - len(lines) if self.console.is_terminal else sys.maxsize
        self._print_lines(self._within(max(room, FEWEST), verdict, steps))
        self._print_lines(lines)

    def _within(self, room: int, verdict: Verdict, steps: Sequence[NextStep]) -> Lines:
        """Shorten a report to ``room`` lines: its beginning, its end, and the key that shows the rest."""
        plain, width = ascii_only(self.console), self.console.width
        lines = self._lines(render(verdict, width, False, steps, plain))
        if len(lines) <= room:
            return lines
        last = self._lines(*closing(verdict, steps, width))[:3]
        first = lines[: max(1, room - len(last) - 1)]
        left = words.count(len(lines) - len(first) - len(last), "more line")
        return [*first, *self._lines(Text(f"  {left}: v", style="quiet")), *last]

    def _lines(self, *shown: RenderableType) -> Lines:
        return self.console.render_lines(Group(*shown), pad=False) if shown else []

    def _print_lines(self, lines: Lines) -> None:
        for line in lines:
            self.console.print(Text.assemble(*((part.text, part.style or "") for part in line)), crop=False)

    def _print_moved_on(self, entry: Entry) -> None:
        self.console.print(Text.assemble(("  On to ", "good"), (entry.name, "title")))
        title = Text(f"  {entry.title} ({entry.kind}, {words.count(entry.points, 'point')})")
        self.console.print(shortened(title, self.console.width, ascii_only(self.console)))
        self.console.print(render_task(entry.load()))
        self.console.print(Text(f"  open {shown_path(entry.skeleton)}", style="quiet"))
        self.console.print()

    def print_footer(self) -> None:
        """Print the current state, the learner's progress and the keys."""
        assert self.current is not None
        progress = self.progress.read()
        entries = self.course.exercises
        done = sum(progress.of(entry.name).passed for entry in entries)
        plain = ascii_only(self.console)
        self.console.print(indented(Rule(style="rule.line", characters="-" if plain else "─"), expand=True))
        name = short_name(self.current, self.course)
        line = Text.assemble("  ", (name, "title"), ("  waiting for a save", "quiet"))
        counted = f"{done} of {len(entries)} passed"
        gap = self.console.width - len(line.plain) - len(counted)
        line.append(" " * max(2, gap) + counted, style="quiet")
        self.console.print(line, no_wrap=True, overflow="ellipsis")
        keys = Text("  ")
        if self._has_keys():
            for key, meaning in KEYS:
                keys.append(key, style="command")
                keys.append(f" {meaning}   ", style="quiet")
        else:
            keys.append("Ctrl-C ends", style="quiet")
        self.console.print(keys, no_wrap=True, overflow="ellipsis")

    def _has_keys(self) -> bool:
        return sys.stdin.isatty() and self.console.is_terminal

    def print_goodbye(self) -> None:
        """Print the learner's progress at the end of a session."""
        progress = self.progress.read()
        upcoming = next_exercise(self.course, progress)
        self.console.print()
        self.console.print(Text(f"  {standing(self.course, progress)}."))
        if upcoming is not None:
            following = f"grader watch {short_name(self.current or upcoming, self.course)}"
            self.console.print(Text.assemble(("  Continue with ", "quiet"), (following, "command")))
        self.console.print()

    def print_finished(self) -> None:
        """Print the summary when all exercises are passed."""
        total = sum(entry.points for entry in self.course.exercises)
        self.console.print()
        count = words.count(len(self.course.exercises), "exercise")
        self.console.print(Text.assemble(("  Every exercise is passed", "good"), f": {count}, {total} points."))
        self.console.print(Text("  `grader watch EXERCISE` opens one again; `grader bench EXERCISE` times it."))
        self.console.print()

    def _clear(self) -> None:
        theme.follow_terminal(self.console)
        if self.console.is_terminal:
            self.console.clear()


def _main_thread() -> int:
    ident = threading.main_thread().ident
    assert ident is not None
    return ident


def _watch_files(course: Course, saved: Callable[[Path], None], stop: threading.Event) -> None:
    """Call ``saved`` for each file written below exercises/, once per save, whichever way the editor writes."""
    from watchfiles import Change, watch

    seen: dict[Path, int] = {}
    folder = course.root / "exercises"
    for changes in watch(folder, stop_event=stop, debounce=200, step=10, raise_interrupt=False):
        paths = sorted({Path(name).resolve() for change, name in changes if change is not Change.deleted})
        for path in paths:
            if path.suffix not in SUFFIXES.values():
                continue
            try:
                written = path.stat().st_mtime_ns
            except OSError:
                continue
            if seen.get(path) != written:
                seen[path] = written
                saved(path)


@contextlib.contextmanager
def keyboard(loop: WatchLoop) -> Iterator[None]:
    """Turn each pressed key into an event at once, without Enter, if stdin is a terminal."""
    try:
        import termios
        import tty
    except ImportError:  # this system has no termios: only Ctrl-C works
        yield
        return
    if not loop._has_keys():
        yield
        return
    terminal = sys.stdin.fileno()
    before = termios.tcgetattr(terminal)

    def one_key_at_a_time(*_: object) -> None:
        tty.setcbreak(terminal, termios.TCSANOW)

    def read() -> None:
        while True:
            try:
                data = os.read(terminal, 32)
            except OSError:
                return
            if not data:
                return
            text = data.decode("utf-8", "ignore")
            # An arrow or function key sends several bytes at once, of which the first is escape.
            if text.startswith("\x1b"):
                continue
            for key in text:
                if loop.grading and key in ("q", "Q"):
                    signal.pthread_kill(_main_thread(), signal.SIGINT)
                    return
                loop.events.put(Pressed(key))

    one_key_at_a_time()
    resumed = signal.signal(signal.SIGCONT, one_key_at_a_time)
    threading.Thread(target=read, daemon=True).start()
    try:
        yield
    finally:
        signal.signal(signal.SIGCONT, resumed)
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)
