"""Draws a report for the README: a kernel graded like ``grader check``, on random inputs from a fixed seed.

python -m grader.cli.picture EXERCISE OUT.svg [--file F] [--seed N] [--results results.json]
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from grader.course import find
from grader.judge import check
from grader.report.picture import picture
from grader.setup.errors import GraderError
from grader.setup.files import write_file
from grader.verdict import Verdict

SEED = 1


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m grader.cli.picture", description="Draw a report as SVG.")
    parser.add_argument("exercise")
    parser.add_argument("out", type=Path)
    parser.add_argument("--file", type=Path, help="grade this file")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--results", type=Path, help="draw this results.json without grading")
    options = parser.parse_args(arguments)
    try:
        if options.results:
            verdict = Verdict.load(options.results)
        else:
            verdict = check(find(options.exercise), options.file, seed=options.seed)
        command = f"grader check {options.exercise.rpartition('/')[2]}"
        write_file(options.out, picture(verdict, command))
    except GraderError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
