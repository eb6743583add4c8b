"""``grader check``: grades one exercise."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console, Group, RenderableType
from rich.text import Text

from grader.cli.list_exercises import next_exercise
from grader.cli.messages import (
    find_exercise,
    print_note,
    read_progress,
    refuse_open_blanks,
    short_name,
    shown_path,
    start_command,
)
from grader.cli.options import Device, JsonOut
from grader.course import Course, Entry
from grader.course.catalog import file_to_grade
from grader.course.learner import pristine
from grader.course.learner.progress import ProgressFile
from grader.course.manifest import SUFFIXES
from grader.course.puzzles import Puzzle
from grader.frontend.toolchain.gpus import find_gpu
from grader.judge.options import CheckOptions
from grader.report import theme
from grader.report.failures import paragraph
from grader.report.task_view import render_task
from grader.report.terminal import NextStep, ascii_only, print_verdict
from grader.setup.errors import GraderError
from grader.verdict import Verdict, words
from grader.verdict.wording import results

if TYPE_CHECKING:
    from grader.judge.options import CheckEvent
    from grader.judge.recorded import Recorded


def command(
    exercise: Annotated[str, typer.Argument(metavar="EXERCISE", help="The exercise, or the path of a file to grade.")],
    file: Annotated[
        Path | None, typer.Option("--file", metavar="F", help="Grade this file instead of your own in exercises/.")
    ] = None,
    device: Device = "cpu",
    seed: Annotated[
        int | None, typer.Option(metavar="N", help="Draw the same random inputs as a run that showed this seed.")
    ] = None,
    json_out: JsonOut = None,
    junit_out: Annotated[Path | None, typer.Option("--junit", metavar="OUT", help="Write JUnit XML here.")] = None,
    html_out: Annotated[
        Path | None,
        typer.Option("--html", metavar="OUT", help="Write an HTML page here, with a step-by-step view of a block."),
    ] = None,
    verbose: Annotated[
        bool,
        typer.Option("--verbose", "-v", help="Show every failing case, and the source with counters for each line."),
    ] = False,
    again: Annotated[
        bool,
        typer.Option("--again", help="With --device cuda: measure the times again, although nothing has changed."),
    ] = False,
    gpu: Annotated[
        str, typer.Option(metavar="GPU", help="With --verbose: find the unit of this GPU that limits the kernel.")
    ] = "H200",
) -> int:
    """Grade one exercise.

    The stages are builds, correct, safe, efficient, and on a GPU fast. Exit code: 0 passed, 1 failed, 2 could not
    grade.
    """
    course = Course()
    gpu = find_gpu(gpu).name
    entry, given = exercise_of(course, exercise)
    if given is not None:
        if file is not None:
            raise GraderError(f"{exercise} and --file {file} are both files", "Give only one of the two files.")
        file = given
        print_note(f"{exercise} is graded as the exercise {entry.name}, not {shown_path(entry.skeleton)}")
    graded = file_to_grade(entry, file)
    must_be_writable(json_out, junit_out, html_out)
    if again and device != "cuda":
        raise GraderError("--again measures times again, and only a real GPU has times", "Add --device cuda.")
    pristine.keep_copies(course)
    console = theme.console(sys.stderr if str(json_out) == "-" else sys.stdout)
    recordings: list[Recorded] = []
    wanted = recordings.append if html_out is not None else None
    options = CheckOptions(
        device=device,
        seed=seed,
        details=verbose,
        gpu=gpu,
        on_recording=wanted,
        times="renew" if again else "reuse",
        own_process="torch" not in sys.modules,
    )
    if isinstance(entry, Puzzle):
        refuse_open_blanks(entry, graded.read_text(encoding="utf-8", errors="replace"), graded)
    verdict = grade(entry, file, console, options)
    own = is_own_file(entry, file)
    if own:
        record(course, entry, verdict)
    print_verdict(verdict, console, verbose, next_steps(course, entry, verdict, file, verbose))
    if own and not verdict.passed and pristine.untouched(course, entry):
        console.print(first_task(entry))
    write_json(verdict, json_out)
    if junit_out is not None:
        from grader.report.junit import save_junit

        save_junit(verdict, junit_out)
    if html_out is not None:
        from grader.report.html import save_html

        save_html(verdict, html_out, _player(recordings))
    return verdict.exit_code


def load_torch(loaded: Callable[[], object] = lambda: None) -> None:
    """Import torch in a thread, while a kernel compiles, and then call ``loaded``."""

    def load() -> None:
        with contextlib.suppress(Exception):  # the next import, in the main thread, raises the same error
            import torch  # noqa: F401

            loaded()

    threading.Thread(target=load, daemon=True).start()


def write_json(verdict: Verdict, path: Path | None) -> None:
    """Write the verdict as JSON to a file, or to stdout if the path is ``-``."""
    if str(path) == "-":
        sys.stdout.write(results.as_json(verdict))
    elif path is not None:
        results.save(verdict, path)


def grade(
    entry: Entry,
    file: Path | None,
    console: Console,
    options: CheckOptions | None = None,
) -> Verdict:
    """Run the check, and show its progress on a terminal."""
    from grader.judge import check

    with working(console, entry.variable) as on_progress:
        return check(entry, file, options or CheckOptions(), on_progress=on_progress, ahead=True)


def _player(recordings: list[Recorded]) -> dict[str, str] | None:
    """Return the player for the page, which shows the recorded block step by step; None if none was recorded."""
    if not recordings:
        return None
    from grader.report.player.page import frame

    (recorded,) = recordings
    return {
        "what": f"Block {tuple(recorded.recording.index)} of {recorded.recording.kernel} in case "
        f"'{recorded.case}' ({recorded.dtype}), step by step",
        "frame": frame(recorded.recording, recorded.source, recorded.findings),
    }


@contextlib.contextmanager
def working(console: Console, name: str) -> Iterator[Callable[[CheckEvent], None] | None]:
    """Show the stage and the case being graded on a terminal; show nothing elsewhere."""
    if not console.is_terminal:
        yield None
        return
    with console.status(f"grading {name}", spinner="line" if ascii_only(console) else "dots") as status:
        finished: dict[str, str] = {}

        def show(event: CheckEvent) -> None:
            if event.event == "finished":
                finished[event.stage] = event.status
            steps = [f"{stage} {ended}" for stage, ended in finished.items()]
            if event.total:
                steps.append(f"{event.stage} {event.done} of {event.total}")
            elif event.event != "finished":
                steps.append(f"{event.stage}: {event.case}" if event.case else event.stage)
            status.update(f"grading {name}: {', '.join(steps)}")

        yield show


def is_own_file(entry: Entry, file: Path | None) -> bool:
    """Return whether the graded file is the learner's own in exercises/. Only that file counts as progress."""
    return file is None or file.resolve() == entry.skeleton.resolve()


def record(course: Course, entry: Entry, verdict: Verdict) -> None:
    """Record the result as progress. Print errors instead of raising them: the verdict matters more."""
    if verdict.exit_code == 2:
        return
    read_progress(course)
    stage = verdict.failed_stage
    try:
        failed_stage = stage.name if stage else ""
        ProgressFile(course.root).record_check(entry.name, verdict.passed, failed_stage, verdict.source_sha256)
    except GraderError as error:
        print_note(str(error))


def first_task(entry: Entry) -> RenderableType:
    """Return the output for a learner who has not changed the skeleton: a note and the task."""
    return Group(
        Text(f"  {entry.skeleton.name} is still the skeleton. The task:", style="title"),
        render_task(entry.load()),
        Text(""),
        paragraph(
            f"The output of {'print' if entry.language == 'python' else 'printf in a kernel'} is shown here as well.",
            style="quiet",
        ),
        Text(""),
    )


def solution_step(course: Course, entry: Entry) -> NextStep:
    """Return the command that shows the solution."""
    return f"grader solution {short_name(entry, course)}", "the course's solution"


def next_steps(course: Course, entry: Entry, verdict: Verdict, file: Path | None, verbose: bool) -> list[NextStep]:
    """Return the commands that are useful after this verdict."""
    name, own = short_name(entry, course), is_own_file(entry, file)
    again = f"grader check {name}" + ("" if own else f" --file {file}")
    if verdict.device == "cuda":
        again += " --device cuda"
    if verdict.exit_code == 2:
        return [("grader doctor", "this machine's tools, and what is missing")]
    progress = ProgressFile(course.root).read()
    if verdict.passed:
        steps: list[NextStep] = []
        if own:
            steps.append(solution_step(course, entry))
            following = next_exercise(course, progress, entry)
            if following is not None:
                steps.append((start_command(following, course), f"next: {following.title}"))
            else:
                steps.append(("grader list", "every exercise is passed"))
        if any(stage.lines for stage in verdict.stages) and not verbose:
            steps.append((f"{again} -v", "the source with its counters"))
        return steps
    steps = [(again, "grades it again")]
    stage = verdict.failed_stage
    if stage is not None and any(not case.passed for case in stage.cases):
        steps.append((f"{again} --seed {verdict.seed}", "the same inputs again"))
    if not verbose and stage is not None and (len(stage.cases) > 1 or stage.lines or len(stage.findings) > 1):
        steps.append((f"{again} -v", "the source with its counters" if stage.lines else "every failure"))
    if own and entry.hints:
        shown = progress.of(entry.name).hints_shown
        if shown < len(entry.hints):
            steps.append((f"grader hint {name}", f"hint {shown + 1} of {len(entry.hints)}"))
        else:
            steps.append((f"grader hint {name}", words.count(len(entry.hints), "hint") + " again"))
    return steps


def exercise_of(course: Course, name: str) -> tuple[Entry, Path | None]:
    """Return the exercise that an argument names, and the file if the argument is one outside ``exercises/``.

    The file's name or its folder names the exercise: ``solutions/day02_reductions/softmax.cu``, ``/tmp/softmax.cu``,
    ``/tmp/softmax/mine.cu``.

    Raises:
        GraderError: there is no such exercise or file, or the path does not name a single exercise.
    """
    path = Path(name)
    if path.suffix not in SUFFIXES.values() or (len(path.parts) < 2 and not path.is_file()):
        return find_exercise(course, name), None
    if not path.is_file():
        if len(path.parts) > 2 and not (course.root / path).is_file() and not course.is_former(name):
            raise GraderError(f"there is no file {name}", "Check the path, or name the exercise.")
        path = course.root / path
        if not path.is_file():
            return find_exercise(course, name), None
    full = path.resolve()
    if full.is_relative_to((course.root / "exercises").resolve()):
        return find_exercise(course, str(full)), None
    for candidate in (f"{full.parent.name}/{full.stem}", full.stem, full.parent.name):
        with contextlib.suppress(GraderError):
            return course.find(candidate), path
    raise GraderError(
        f"{name} is not named after an exercise", f"Name the exercise as well: grader check EXERCISE --file {name}"
    )


def must_be_writable(*paths: Path | None) -> None:
    """Raise if a file cannot be written. It is called before grading, which may take a minute."""
    for path in paths:
        if path is None or str(path) == "-":
            continue
        if path.is_dir():
            raise GraderError(f"cannot write {path}: it is a folder", "Give the name of a file.")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            existed = path.exists()
            with open(path, "ab"):
                pass
            if not existed:
                path.unlink()
        except OSError as error:
            raise GraderError(f"cannot write {path}: {error.strerror}") from error
