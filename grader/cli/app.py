"""The command line with all subcommands. It turns every error into one message and an exit code."""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
import traceback
from collections.abc import Sequence
from typing import Annotated

import typer
from typer.exceptions import TyperException

from grader import __version__
from grader.cli import is_interrupt
from grader.cli.messages import print_error
from grader.setup.errors import GraderError
from grader.setup.packages import missing_package

PASSED, FAILED, NOT_GRADED, INTERRUPTED = 0, 1, 2, 130

COMMANDS = {
    "init": "init",
    "list": "list_exercises",
    **{
        name: name
        for name in ("check", "watch", "hint", "reset", "solution", "bench", "goals", "submit", "grade", "export")
    },
    **{name: name for name in ("run", "nvcc", "doctor", "demo", "dev")},
}
"""The subcommands with their modules, in the order of the help. Only the requested one is imported."""


def _version(wanted: bool) -> None:
    if wanted:
        print(f"grader {__version__}")
        raise typer.Exit()


def _options(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    if context.invoked_subcommand is None:
        print(context.get_help())


def _app(arguments: Sequence[str]) -> typer.Typer:
    """Return the subcommand that the arguments begin with, or all subcommands if they begin with none."""
    app = typer.Typer(
        name="grader",
        help="Grades the exercises of 'LLM kernels, day by day', on a simulated GPU or on a real one.",
        epilog="An exercise is named day06_flash_attention/flash_attention, 6/flash_attention or just flash_attention.",
        add_completion=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback(invoke_without_command=True)(_options)
    for name in [arguments[0]] if arguments and arguments[0] in COMMANDS else COMMANDS:
        module = importlib.import_module(f"grader.cli.{COMMANDS[name]}")
        if hasattr(module, "app"):
            app.add_typer(module.app, name=name)
        else:
            app.command(name, cls=getattr(module, "CommandClass", None))(module.command)
    return app


def _interrupted() -> int:
    with contextlib.suppress(OSError):
        print("\ninterrupted", file=sys.stderr)
    return INTERRUPTED


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code.

    It raises no exception, except for a bug if GRADER_DEBUG is set.
    """
    try:
        given = sys.argv[1:] if arguments is None else list(arguments)
        result = _app(given)(args=given, prog_name="grader", standalone_mode=False)
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
        print_error(_sentence(error.format_message()), f"`{command} --help` lists its arguments.")
        return NOT_GRADED
    except (KeyboardInterrupt, typer.Abort):
        return _interrupted()
    except BrokenPipeError:
        # The reader of a pipe (head, less) has ended. Discard all further output, including what Python writes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return PASSED
    except Exception as error:
        if is_interrupt(error):
            return _interrupted()
        if os.environ.get("GRADER_DEBUG"):
            raise
        if missing := missing_package(error):
            print_error(missing)
            return NOT_GRADED
        last = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{os.path.basename(last.filename)}:{last.lineno}"
        print_error(
            f"the grader itself failed: {type(error).__name__}: {error} ({where})",
            "This is a bug of the grader, not of your kernel. Set GRADER_DEBUG=1 to see the traceback.",
        )
        return NOT_GRADED


def _sentence(message: str) -> str:
    """Return Typer's message in the style of the grader's own: lower-case, without a full stop."""
    message = message.strip().rstrip(".").replace("Value error, ", "")
    return message[:1].lower() + message[1:]
