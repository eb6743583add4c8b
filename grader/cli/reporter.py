"""Shows the report that a program left: ``python -m grader.cli.reporter PROGRAM REPORT``, called by the program itself."""

from __future__ import annotations

import sys
from pathlib import Path

from grader.errors import GraderError


def main(arguments: list[str]) -> int:
    """The command line."""
    from grader.present import theme
    from grader.present.program import print_program
    from grader.programs import results
    from grader.programs.execute import read_left_report

    program, report = map(Path, arguments)
    try:
        outcome = read_left_report(report, program)
    except GraderError as problem:
        print(problem, file=sys.stderr)
        return 2
    findings = outcome.report.findings if outcome.report else []
    lines = outcome.report.source_lines if outcome.report else []
    print_program(
        findings, results.kernel_rows(outcome), lines, results.ending(outcome), theme.console(sys.stderr), False
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
