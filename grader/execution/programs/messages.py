"""Turns a compiler's output about a program of several files into error messages with source lines."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from grader.course.manifest import FILE as COURSE_FILE
from grader.execution.build.diagnostics import CompileError, located
from grader.execution.build.diagnostics import explain as explain_one_file
from grader.execution.programs.files import read_text
from grader.frontend.messages import RewriteError
from grader.frontend.toolchain.compilers import Compiler
from grader.setup.errors import BuildError

_COLUMN = re.compile(r"^([^:\n]+:\d+):\d+: (?=fatal error|error|warning|note)", re.MULTILINE)
_MISSING_HEADER = re.compile(r"No such file or directory|' file not found")
_OPENMP = ("omp_", "GOMP_", "__kmpc_")
_LINKED = re.compile(r": undefined reference to [`'‘](.*?)['’]$", re.MULTILINE)


def explain(output: str, files: Sequence[Path], compiler: Compiler) -> BuildError:
    """Return the output of a failed compiler or linker as an error."""
    missing = dict.fromkeys(_LINKED.findall(output))
    if "main" in missing:
        here = Path.cwd()
        in_a_course = any((folder / COURSE_FILE).is_file() for folder in (here, *here.parents))
        exercise = " For an exercise's file, use `grader check`." if in_a_course else ""
        return BuildError("the program has no main", f"Pass the file that defines it as well.{exercise}")
    if missing:
        named = ", ".join(list(missing)[:8])
        openmp = all(name.startswith(_OPENMP) for name in missing)
        hint = "Pass all files of the program. Libraries such as cuFFT are not simulated."
        hint = "For OpenMP, build with -Xcompiler -fopenmp (grader nvcc)." if openmp else hint
        return BuildError(f"used but not defined: {named}", hint)
    # The columns refer to the translated text, so they would mislead.
    output = _COLUMN.sub(r"\1: ", output)
    blamed = next(
        (file for file in files if re.search(rf"^{re.escape(str(file))}:\d+: (?:fatal )?error", output, re.M)), None
    )
    file = blamed or (files[0] if files else Path("program"))
    text = read_text(file) if file.is_file() else ""
    shown = output.replace(f"{file}:", f"{file.name}:")
    problem = explain_one_file(shown, Path(file.name), text, None, compiler)
    if _MISSING_HEADER.search(problem.message):
        return CompileError(problem.message, "Name the folder of the header with -I.", problem.diagnostics)
    return problem


def placed(problem: RewriteError, places: Sequence[tuple[str, int]]) -> RewriteError:
    """Return an error of the front end with the line in the program's file instead of the preprocessed text's.

    ``places`` has the file and line of each line of the preprocessed text.
    """
    file, line = places[problem.line - 1] if 1 <= problem.line <= len(places) else ("", 0)
    if not file or not Path(file).is_file():
        return located(Path(file or "program"), problem)
    lines = read_text(Path(file)).split("\n")
    source = lines[line - 1] if line <= len(lines) else ""
    column = problem.column if source == problem.source_line else 0
    return located(Path(file), RewriteError(line, column, problem.message, problem.hint, source_line=source))
