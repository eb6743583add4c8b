"""``grader nvcc``: nvcc's command line for the simulated GPU: ``make NVCC="grader nvcc"``."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperCommand

from grader.cli.messages import print_note
from grader.setup.errors import GraderError
from grader.setup.files import write_file

if TYPE_CHECKING:
    from grader.execution.programs.files import Unit

_ARGUMENTS = "grader.nvcc.arguments"


class CommandClass(TyperCommand):
    """A command that passes all its arguments on to nvcc's command line."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        ctx.meta[_ARGUMENTS] = args
        return super().parse_args(ctx, ["--help"] if args == ["--help"] or args == ["-h"] else [])


def command(context: typer.Context) -> int:
    """Compile CUDA programs for the simulated GPU, called like nvcc.

    In a project's build, use it in place of nvcc: make NVCC="grader nvcc".

    The results are ordinary objects and programs. A program shows its findings on stderr when it ends. `grader nvcc
    --toolkit` prints a folder for Makefiles that need CUDA's: make CUDA_DIR="$(grader nvcc --toolkit)".

    Set these environment variables when you run such a program: GRADER_CHECK_BLOCKS=N checks N random blocks of each
    launch, GRADER_CHECK_LAUNCHES=N the first N launches of each kernel, GRADER_SEED=N chooses the blocks,
    GRADER_TIMEOUT=S stops the program after S seconds, and GRADER_WORKERS=N uses N cores.
    """
    from grader.execution.programs.build import Options, compile_unit, link
    from grader.execution.programs.files import language_of, unit
    from grader.execution.programs.nvcc_options import read_command_line
    from grader.execution.programs.toolkit import folder, for_any_linker

    if context.meta.get(_ARGUMENTS) == ["--toolkit"]:
        print(folder())
        return 0
    call = read_command_line(context.meta.get(_ARGUMENTS, []))
    if call.version:
        # Makefiles parse this output. It names release 13.0, because the simulator follows the rules of CUDA 13.0.
        print("nvcc: the simulated GPU's compiler driver\nCuda compilation tools, release 13.0, V13.0.0")
        return 0
    if call.verbose:
        _print_commands(folder())
    if not call.inputs:
        raise GraderError("nvcc: there is no input file", "Name the .cu files, or the objects to link.")
    if call.verbose and call.ignored:
        print_note(f"these options have no effect for the simulated GPU: {' '.join(dict.fromkeys(call.ignored))}")
    options = Options(call.std, host_flags=tuple(call.host_flags), relocatable=call.relocatable)
    sources = [path for path in call.inputs if call.language or language_of(path)]
    if call.compile_only and call.output and len(sources) > 1:
        raise GraderError("nvcc: -o names one file, but several are compiled", "Compile them one by one.")
    made: dict[Path, Path] = {}
    for path in sources:
        one = unit(path, tuple(call.include_dirs), tuple(call.defines), call.language)
        made[path] = compile_unit(one, options)
    if call.compile_only:
        for path, built in made.items():
            target = call.output or Path(path.with_suffix(".o").name)
            _place(for_any_linker(built), target)
            if call.dependencies:
                one = unit(path, tuple(call.include_dirs), tuple(call.defines), call.language)
                _write_rule(
                    call.dependency_file or target.with_suffix(".d"), call.dependency_target or str(target), one
                )
        return 0
    objects = [made.get(path, path.resolve()) for path in call.inputs]
    for path in objects:
        if not path.exists():
            raise GraderError(f"there is no file {path}")
    _place(link(objects, options, call.link_flags, reporter=True), call.output or Path("a.out"))
    return 0


def _print_commands(toolkit: Path) -> None:
    """Print the lines of ``nvcc -v`` that CMake parses: the toolkit's folder and the link command."""
    libraries = f'"-L{toolkit}/lib64"'
    print(f"#$ PATH={toolkit}/bin:\n#$ TOP={toolkit}")
    print(f"#$ NVVMIR_LIBRARY_DIR={toolkit}/nvvm/libdevice\n#$ LIBRARIES= {libraries}")
    print("#$ cicc -arch compute_80 a.cpp1.ii")
    print(f'#$ g++ -o "a.out" "a.o" {libraries} -lcudadevrt -lcudart_static -lrt -lpthread -ldl', flush=True)


def _write_rule(file: Path, target: str, unit: Unit) -> None:
    """Write a make rule that lists the headers, so that make recompiles when a header changes."""
    from grader.execution.programs.preprocess import own_files

    names = [str(path).replace("$", "$$").replace("#", r"\#").replace(" ", r"\ ") for path in own_files(unit)]
    write_file(file, f"{target}: {' '.join(names)}\n")


def _place(built: Path, target: Path) -> None:
    try:
        target.unlink(missing_ok=True)
        shutil.copy(built, target)
        target.chmod(0o755 if built.suffix != ".o" else 0o644)
    except OSError as problem:
        raise GraderError(f"cannot write {target}: {problem.strerror}") from None
