"""``grader run``: runs a whole CUDA program with all checks of the simulator."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from grader.cli.check import must_be_writable, write_json
from grader.cli.messages import print_note
from grader.cli.options import DeviceName, JsonOut
from grader.report import theme
from grader.setup.errors import GraderError

if TYPE_CHECKING:
    from grader.execution.programs.build import Options
    from grader.execution.programs.execute import Outcome
    from grader.execution.programs.files import Unit

_ARGUMENTS = "grader.run.arguments"


class CommandClass(TyperCommand):
    """A command whose arguments after ``--`` belong to the program."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        at = args.index("--") if "--" in args else len(args)
        ctx.meta[_ARGUMENTS] = args[at + 1 :]
        return super().parse_args(ctx, args[:at])


def command(
    context: typer.Context,
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="The program's files: .cu, .cpp, .c or .o.")],
    include: Annotated[
        list[Path] | None, typer.Option("--include", "-I", metavar="DIR", help="Also look for headers here.")
    ] = None,
    define: Annotated[list[str] | None, typer.Option("--define", "-D", metavar="X[=Y]", help="Define a macro.")] = None,
    std: Annotated[str, typer.Option(metavar="STD", help="The C++ standard, c++17 or newer.")] = "c++17",
    device: Annotated[
        DeviceName, typer.Option(help="The simulated GPU (cpu), or a real one (cuda), by nvcc and without checks.")
    ] = "cpu",
    no_checks: Annotated[bool, typer.Option("--no-checks", help="Run the kernels without any checks.")] = False,
    check_blocks: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="Check only N random blocks of each launch, and run the others without checks. Of races between "
            "blocks, only those between two checked blocks are found.",
        ),
    ] = None,
    check_launches: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Check only the first N launches of each kernel."),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(metavar="SEED", min=0, max=2**32 - 1, help="Choose the blocks of --check-blocks by this seed."),
    ] = None,
    same_value_races: Annotated[
        bool, typer.Option("--same-value-races", help="Also report races between writes of the same value.")
    ] = False,
    reverse: Annotated[
        bool,
        typer.Option(
            "--reverse",
            help="Run the blocks and warps in reverse order. If threads communicate through locks or flags, a race may "
            "occur in one order only.",
        ),
    ] = False,
    json_out: JsonOut = None,
    html_out: Annotated[Path | None, typer.Option("--html", metavar="OUT", help="Write one HTML page here.")] = None,
    verbose: Annotated[
        bool,
        typer.Option("--verbose", "-v", help="Also show the source with its counters, and the totals of each kernel."),
    ] = False,
    jail: Annotated[
        bool, typer.Option("--jail", help="Compile and run it in a jail: it sees no files and no network.")
    ] = False,
    workers: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, max=64, help="Cores that run blocks at the same time; default: all."),
    ] = None,
    timeout: Annotated[
        float | None,
        typer.Option(
            metavar="S", min=0.1, help="Stop the program after S seconds, and name the line that was running."
        ),
    ] = None,
) -> int:
    """Run a CUDA program, with its own main, on the simulated GPU.

    Arguments after '--' are passed to the program. Output and findings do not depend on the number of cores: blocks
    whose order matters run one after another, and -v names their kernels. Findings are printed to stderr. Exit code:
    the program's own; 1 if it succeeded with findings; 2 if it could not be built, or uses a feature that is not
    simulated.
    """
    from grader.execution.jail.compiling import run_in
    from grader.execution.jail.running import Jail
    from grader.execution.programs.build import Options, build_cuda, flags_of_defines
    from grader.execution.programs.execute import Sample, execute
    from grader.execution.programs.files import unit

    must_be_writable(json_out, html_out)
    units = [unit(file, tuple(include or ()), flags_of_defines(define or ())) for file in files]
    sampled = check_blocks is not None or check_launches is not None
    if sampled and (no_checks or device == "cuda"):
        raise GraderError(
            "--check-blocks and --check-launches need checks", "Omit --no-checks, and run on the simulated GPU."
        )
    if seed is not None and check_blocks is None:
        raise GraderError("--seed chooses the blocks of --check-blocks", "Give --check-blocks N as well.")
    if reverse and device == "cuda":
        raise GraderError("--reverse is for the simulated GPU", "Omit --reverse, or run on the simulated GPU.")
    tier = _tier() if jail and device == "cpu" else "none"
    options = Options(std, not no_checks, run=run_in(Jail(tier)))
    arguments: list[str] = context.meta.get(_ARGUMENTS, [])
    name = str(files[0].with_suffix(""))
    if device == "cuda":
        if jail:
            raise GraderError(
                "--jail is for the simulated GPU", "Omit --jail, or run on the simulated GPU (--device cpu)."
            )
        return execute(build_cuda(units, options), arguments, name=name, timeout=timeout, simulated=False).exit_code
    program, seconds = _built(units, options)
    outcome = execute(
        program,
        arguments,
        name=name,
        timeout=timeout,
        checks=not no_checks,
        jail=tier,
        workers=workers or min(64, len(os.sched_getaffinity(0))),
        explain=verbose,
        same_value_races=same_value_races,
        reverse=reverse,
        sample=Sample(check_blocks, check_launches, seed),
    )
    show(outcome, units[0].file, seconds, tier, verbose, json_out, html_out)
    return outcome.exit_code


def _tier() -> str:
    """Return the jail to use: bubblewrap, or Landlock where bubblewrap is missing or forbidden."""
    from grader.execution.runner.tiers import why_not

    without = why_not("bwrap")
    if not without:
        return "bwrap"
    if problem := why_not("landlock"):
        raise GraderError(
            f"--jail needs bubblewrap or Landlock, and neither works here. Bubblewrap: {without}. Landlock: {problem}",
            "`grader doctor` says what to change. Without --jail, the program can read and write your files.",
        )
    print_note(f"--jail uses Landlock, because bubblewrap does not work here: {without}")
    return "landlock"


def _built(units: list[Unit], options: Options) -> tuple[Path, float]:
    from grader.execution.programs.build import build_program

    began = time.monotonic()
    return build_program(units, options), time.monotonic() - began


def show(
    outcome: Outcome,
    file: Path,
    build_seconds: float = 0.0,
    isolation: str = "none",
    verbose: bool = False,
    json_out: Path | None = None,
    html_out: Path | None = None,
) -> None:
    """Write the report of a finished program to stderr and to the requested files."""
    from grader.execution.programs import results
    from grader.report.program import print_program

    sys.stdout.flush()
    print_program(outcome, theme.console(sys.stderr), verbose)
    if json_out is None and html_out is None:
        return
    verdict = results.verdict(outcome, file, build_seconds, isolation)
    write_json(verdict, json_out)
    if html_out is not None:
        from grader.report.html import save_html

        save_html(verdict, html_out)
