"""Shows a program's report: ``python -m grader.cli.reporter PROGRAM REPORT``, called by the program itself."""

from __future__ import annotations

import sys
from pathlib import Path

from grader.setup.errors import GraderError


def main(arguments: list[str]) -> int:
    """Run the command line."""
    from grader.execution.programs.execute import read_left_report
    from grader.report import theme
    from grader.report.program import print_program

    program, report = map(Path, arguments)
    try:
        outcome = read_left_report(report, program)
    except GraderError as problem:
        print(problem, file=sys.stderr)
        return 2
    print_program(outcome, theme.console(sys.stderr), verbose=False)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
