"""Puts the subcommands together, and turns everything that can go wrong into one message and an exit code."""

from __future__ import annotations

import contextlib
import os
import sys
import traceback
from collections.abc import Sequence
from typing import Annotated

import typer
from typer.exceptions import TyperException

from grader import __version__
from grader.cli import (
    bench,
    check,
    demo,
    dev,
    doctor,
    export,
    grade,
    hint,
    init,
    list_exercises,
    nvcc,
    reset,
    solution,
    submit,
    watch,
)
from grader.cli import run as run_program
from grader.cli.messages import print_error
from grader.errors import GraderError

PASSED, FAILED, NOT_GRADED, INTERRUPTED = 0, 1, 2, 130

app = typer.Typer(
    name="grader",
    help="Grades the exercises of 'LLM kernels, day by day', on a simulated GPU or on a real one.",
    epilog="An exercise is named day06_flash_attention/flash_attention, 6/flash_attention or just flash_attention.",
    add_completion=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"grader {__version__}")
        raise typer.Exit()


@app.callback(invoke_without_command=True)
def _options(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    if context.invoked_subcommand is None:
        print(context.get_help())


app.command("init")(init.command)
app.command("list")(list_exercises.command)
app.command("check")(check.command)
app.command("watch")(watch.command)
app.command("hint")(hint.command)
app.command("reset")(reset.command)
app.command("solution")(solution.command)
app.command("bench")(bench.command)
app.command("submit")(submit.command)
app.command("grade")(grade.command)
app.add_typer(export.app, name="export")
app.command("run", cls=run_program.WithArguments)(run_program.command)
app.command("nvcc", cls=nvcc.AsTheyAre)(nvcc.command)
app.command("doctor")(doctor.command)
app.command("demo")(demo.command)
app.add_typer(dev.app, name="dev")


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code. Nothing but a bug under GRADER_DEBUG gets out of here."""
    try:
        result = app(args=_arguments(arguments), prog_name="grader", standalone_mode=False)
        if result == INTERRUPTED:
            raise KeyboardInterrupt
        return result if isinstance(result, int) else PASSED
    except typer.Exit as leaving:
        return leaving.exit_code
    except GraderError as error:
        print_error(error.message, error.hint)
        return NOT_GRADED
    except TyperException as error:
        context = getattr(error, "ctx", None)
        command = context.command_path if context else "grader"
        print_error(_sentence(error.format_message()), f"`{command} --help` shows what it takes.")
        return NOT_GRADED
    except (KeyboardInterrupt, typer.Abort):
        with contextlib.suppress(OSError):
            print("\ninterrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        # The reader (head, less) has gone: nothing is left to say, not even when Python flushes at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return PASSED
    except Exception as error:
        if os.environ.get("GRADER_DEBUG"):
            raise
        last = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{os.path.basename(last.filename)}:{last.lineno}"
        print_error(
            f"the grader itself failed: {type(error).__name__}: {error} ({where})",
            "This is a fault of the grader, not of your kernel. GRADER_DEBUG=1 shows where it comes from.",
        )
        return NOT_GRADED


def _arguments(arguments: Sequence[str] | None) -> list[str] | None:
    return None if arguments is None else list(arguments)


def _sentence(message: str) -> str:
    """Typer's message, as ours begin: small, and without a full stop."""
    message = message.strip().rstrip(".").replace("Value error, ", "")
    return message[:1].lower() + message[1:]
