"""``python -m grader.cli.install``: builds the grader's own C++ parts in advance, for a quick first verdict.

They are stored next to the Python in use (a virtual environment). Otherwise, or if the sources or the compiler change,
they are built on first use and stored in the build cache.
"""

from __future__ import annotations

import compileall
import sys
from pathlib import Path

import grader
from grader.execution.build.build import precompile_headers
from grader.execution.build.cxx_library import few_functions
from grader.execution.jail.programs import PROGRAMS, build_program
from grader.execution.runner.canary import build_canary
from grader.execution.runner.program import build_runner
from grader.frontend.toolchain import cache
from grader.frontend.toolchain.compilers import find_cxx
from grader.setup.errors import GraderError
from grader.simulator.library import ensure_library


def main() -> int:
    """Build the simulator, the runner and the sandbox's programs; report a failure and continue."""
    compile_modules(Path(grader.__file__).parent)
    folder = cache.installed_folder()
    try:
        ahead = cache.BuildCache(folder)
        ensure_library(cache=ahead)
        precompile_headers(ahead)
        few_functions(find_cxx(), ahead)
        build_runner(cache=ahead)
        build_canary(cache=ahead)
        for name in PROGRAMS:
            build_program(name, ahead)
    except GraderError as problem:
        print(f"note: nothing was built in advance: {problem}", file=sys.stderr)
    return 0


def compile_modules(package: Path) -> None:
    """Store the bytecode of a package, as pip does when it copies one.

    If Python is configured to write none (``PYTHONDONTWRITEBYTECODE``, usual in containers), each process of a check
    would compile a hundred modules again, which takes an eighth of a second.
    """
    compileall.compile_dir(package, quiet=2)


if __name__ == "__main__":
    sys.exit(main())
