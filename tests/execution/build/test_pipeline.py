"""Compiling, checking stores and linking as a pipeline gives the same result as running the steps in sequence."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from grader.execution.build.build import compile_kernel
from grader.execution.build.pipeline import compile_and_link
from grader.execution.submission_sandbox.late_accesses import with_checks
from grader.frontend.toolchain.process import Command, Finished, run_command
from grader.setup.errors import GraderError

STORE = "\tmovl\t%eax, 8(%rbx)\n"
FUNCTION = "{0}:\n.LFB1:\n\tmovq\t%rbx, %rdi\n" + STORE + STORE + "\tret\n\t.size\t{0}, .-{0}\n"
ASSEMBLY = "".join(FUNCTION.format(f"f\u00fc{i}") for i in range(3))


def piped(tmp_path: Path, compiler: str, linker: str) -> tuple[Finished, Finished | None, str]:
    (tmp_path / "made").write_text(ASSEMBLY)
    commands = [Command(("sh", "-c", script), tmp_path) for script in (compiler, linker)]
    return compile_and_link(commands[0], lambda: commands[1], run_command)


def test_the_linker_gets_all_of_it_and_messages_stay_apart(tmp_path: Path) -> None:
    done, linked, assembly = piped(tmp_path, "cat made; echo a warning >&2", "cat > got")
    assert (done, linked) == (Finished(0, "a warning\n"), Finished(0, ""))
    assert assembly == with_checks(ASSEMBLY) == (tmp_path / "got").read_text()


@pytest.mark.parametrize("linker", ["exit 5", "exec 0<&-; exit 5"])
def test_a_linker_that_exits_early_loses_no_assembly_code(tmp_path: Path, linker: str) -> None:
    done, linked, assembly = piped(tmp_path, "cat made; for i in $(seq 20000); do echo '# more'; done", linker)
    assert linked is not None and (done.returncode, linked.returncode) == (0, 5)
    assert assembly == with_checks(ASSEMBLY) + "# more\n" * 20000


def test_a_file_that_does_not_compile_is_not_linked(tmp_path: Path) -> None:
    done, linked, assembly = piped(tmp_path, "printf '\t.file'; echo no >&2; exit 1", "touch linked")
    assert (done, linked, assembly) == (Finished(1, "no\n"), None, "\t.file")
    assert not (tmp_path / "linked").exists()


def test_a_compiler_that_cannot_be_started_blocks_no_thread(tmp_path: Path) -> None:
    def run(command: Command) -> Finished:
        raise GraderError("no jail")

    with pytest.raises(GraderError, match="no jail"):
        compile_and_link(Command(("true",), tmp_path), lambda: Command(("true",), tmp_path), run)


def test_a_kernel_that_needs_more_of_the_cxx_library_is_linked_again(tmp_path: Path) -> None:
    file, commands = tmp_path / "k.cu", []
    file.write_text(
        "__global__ void k(int* x) { *x = 1; }\n"
        'extern "C" void f(int* x) { try { throw 1; } catch (int one) { k<<<one, 1>>>(x); } }\n'
    )

    def run(command: Command) -> Finished:
        commands.append(command)
        return run_command(command)

    library = compile_kernel(file, text=f"{file.read_text()}// {tmp_path}\n", run=run).library
    assert len(commands) == 3
    wanted = subprocess.run(["nm", "-D", library], capture_output=True, text=True, check=True).stdout
    assert "_ZTIi" in wanted
