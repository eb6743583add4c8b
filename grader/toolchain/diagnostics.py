"""Compiler messages for learners: at their file and line, errors first, the simulator's internals left out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from grader.errors import BuildError

if TYPE_CHECKING:
    from grader.simulator.rewrite import RewriteError, Rewritten
    from grader.toolchain.compilers import Compiler


def located(path: Path, problem: RewriteError) -> BuildError:
    """An error of the front end, in the manner of a compiler."""
    from grader.simulator.rewrite import RewriteError

    text = f"{path.name}:{problem.line}:{problem.column}: error: {problem.message}"
    if problem.source_line:
        text += f"\n  {problem.line} | {problem.source_line}\n{' ' * len(str(problem.line))}   | {' ' * (problem.column - 1)}^"
    return RewriteError(problem.line, problem.column, text, problem.hint, source_line=problem.source_line)


def explain(output: str, path: Path, original: str, rewritten: Rewritten | None, compiler: Compiler) -> BuildError:
    """The compiler's output as one error."""
    return BuildError(output.strip())
