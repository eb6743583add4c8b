"""Builds without the simulator's checks: files compile and run with every compiler, and errors name the right lines."""

import contextlib
import re
import subprocess
import sys
import uuid
from pathlib import Path

import pytest
import torch
from elftools.elf.elffile import ELFFile

from grader.course import find
from grader.execution.build import build as build_module
from grader.execution.build.build import compile_kernel, entry_point, plan_kernel
from grader.execution.in_process.kernel import Kernel
from grader.frontend.tokens import Source
from grader.frontend.toolchain.cache import open_cache
from grader.frontend.toolchain.compilers import Compiler, available_cxx, find_cxx, find_nvcc
from grader.frontend.toolchain.process import Command, Finished, run_command
from grader.setup.errors import BuildError, GraderError

CONSTRUCTS = Path(__file__).parent / "constructs.cu"
CHECKS = Path(build_module.__file__).parents[2] / "simulator" / "checks"
GOOD = """__global__ void twice(float* x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= 2;
}
extern "C" void go(float* x, int n, cudaStream_t stream) {
    twice<<<(n + 255) / 256, 256, 0, stream>>>(x, n);
}
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "twice.cu"
    path.write_text(GOOD)
    return path


def unseen(text: str = GOOD) -> str:
    """Return a text that is in no build cache."""
    return f"{text}// {uuid.uuid4()}\n"


@pytest.fixture(params=available_cxx(), ids=lambda compiler: compiler.name)
def compiler(request):
    return request.param


@pytest.fixture(params=[False, True] if CHECKS.is_dir() else [False], ids=lambda on: "checked" if on else "plain")
def checks(request):
    return request.param


def test_every_construct_runs(compiler, checks):
    kernel = Kernel(compile_kernel(CONSTRUCTS, checks=checks, compiler=compiler))
    x = torch.ones(64)
    kernel.run_scale(x, 64)
    assert x[0] == 12 and (x[1:] == 12).all()
    kernel.run_add(x, True)
    kernel.run_add(x, True)
    kernel.run_add(x, False)
    assert (x == 15).all()
    t = torch.arange(64.0)
    kernel.run_shared(x)
    torch.testing.assert_close(x, 6 * t + 1000 + 5 + 7 + 1 + 1 + 1)
    kernel.run_dynamic(x)
    torch.testing.assert_close(x, 63 - t + t % 4 + 1)
    out = torch.zeros(2, dtype=torch.int32)
    for i in range(1, 3):
        kernel.run_count(out)
        assert out.tolist() == [40 + i, 41 + i]
    kernel.run_by_value(x, 3.0)
    assert x[0] == 10


def test_debug_information_has_no_types_or_variables(file, compiler, checks):
    """They are unused, and would double the assembly that the compiler writes and the linker reads."""
    with compile_kernel(file, checks=checks, compiler=compiler).library.open("rb") as library:
        units = list(ELFFile(library).get_dwarf_info().iter_CUs())
        tags = {die.tag for unit in units for die in unit.iter_DIEs() if die.tag}
    assert "DW_TAG_subprogram" in tags
    assert not tags & {"DW_TAG_variable", "DW_TAG_formal_parameter", "DW_TAG_base_type", "DW_TAG_structure_type"}


def test_a_build_is_cached(file):
    first = compile_kernel(file, checks=False)
    again = compile_kernel(file, checks=False)
    assert again.cached and again.library == first.library and first.libsim and first.libsim.is_file()
    assert [p.name for p in again.launchers] == ["go"] and entry_point("go") == "grader_call_go"
    assert sorted(p.name for p in first.library.parent.iterdir()) == ["kernel.cpp", "kernel.so"]


def test_the_same_text_at_another_path_is_the_same_build(file, tmp_path):
    (tmp_path / "other").mkdir()
    copy = tmp_path / "other" / file.name
    copy.write_text(GOOD)
    assert plan_kernel(copy).key == plan_kernel(file).key
    keys = {plan_kernel(file, checks=checks).key for checks in (False, True)}
    compilers = {compiler.identity: compiler for compiler in (find_cxx(), *available_cxx())}
    keys |= {plan_kernel(file, compiler=compiler).key for compiler in compilers.values()}
    keys.add(plan_kernel(file, text=GOOD + "\n").key)
    assert len(keys) == 2 + len(compilers)  # the first two builds used the default compiler


def test_only_entry_points_are_exported(file):
    library = compile_kernel(file, checks=False).library
    listed = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True).stdout
    assert [line.split()[-1] for line in listed.splitlines()] == ["grader_call_go"]


def test_the_build_needs_no_torch(file):
    program = (
        "import sys; from grader.execution.build.build import compile_kernel; "
        f"compile_kernel({str(file)!r}, checks=False); sys.exit('torch' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True, cwd=Path(__file__).parents[3])


def test_a_jail_may_run_the_compiler(file):
    seen: list[Command] = []

    def run(command: Command) -> Finished:
        seen.append(command)
        return run_command(command)

    compile_kernel(file, checks=False, text=unseen(), run=run)
    assert len(seen) == 2
    for command in seen:
        outside = [a for a in command.argv[1:] if a.startswith("/") and not a.startswith(("/usr", "/bin"))]
        readable = [str(path) for path in command.reads]
        assert all(any(path.startswith(r) for r in readable) for path in outside), command.argv


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("x[i] *= 2;", "x[i] *= two;", "twice.cu:3:24: error: "),
        ("x[i] *= 2;\n", "x[i] *= 2\n", "twice.cu:3:"),
        ("(x, n);", "(x);", "twice.cu:6:5: error: "),
        ("twice<<<", "thrice<<<", "twice.cu:6:5: error: "),
        ("float* x, int n) {\n    int", "flota* x, int n) {\n    int", "twice.cu:1:23: error: "),
    ],
)
def test_mistakes_are_at_the_learners_line(file, compiler, old, new, says):
    text = GOOD.replace(old, new)
    assert text != GOOD
    with pytest.raises(BuildError) as caught:
        compile_kernel(file, checks=False, text=text, compiler=compiler)
    message = caught.value.message
    assert says in message and "^" in message
    assert "sim::" not in message and "sim_args" not in message and "launch.h" not in message
    assert caught.value.diagnostics[0].severity == "error"


def test_a_remark_replaces_the_warning_of_its_line(file, compiler):
    file.write_text(GOOD.replace("x[i] *= 2", "x[0, i] *= 2"))
    assert [item.line for item in compile_kernel(file, compiler=compiler).diagnostics] == [3]
    file.write_text(GOOD.replace("*= 2;", "*= 2;\n    float y = 1 / 0;"))
    (warning,) = compile_kernel(file, compiler=compiler).diagnostics
    assert warning.line == 4 and "division by zero" in warning.message


def test_an_undefined_function(file, compiler):
    text = GOOD.replace("__global__", "__device__ float helper(float);\n__global__", 1).replace(
        "*= 2", "= helper(x[i])"
    )
    with pytest.raises(BuildError, match=r"twice\.cu:\d: error: used but not defined: 'helper\(float\)'"):
        compile_kernel(file, checks=False, text=text, compiler=compiler)


def test_errors_of_the_front_end_look_the_same(file):
    text = "#include <thrust/sort.h>\n" + GOOD
    with pytest.raises(BuildError, match=r"twice\.cu:1:1: error: #include <thrust/sort.h>") as caught:
        compile_kernel(file, text=text)
    assert caught.value.diagnostics[0].line == 1


def test_a_header_that_the_simulator_lacks(file):
    with pytest.raises(BuildError, match=r"cuda_texture_types\.h") as caught:
        compile_kernel(file, text="#include <cuda_texture_types.h>\n" + GOOD)
    assert "cuda_fp16.h" in caught.value.hint and "sim/" not in caught.value.hint


def test_launchers_with_types_that_cannot_be_passed(file):
    with pytest.raises(BuildError, match=r"twice\.cu, line 5: launcher go: the parameter 'Mine m'"):
        compile_kernel(file, text=GOOD.replace("float* x, int n, cuda", "Mine m, int n, cuda"))


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda path: None, "there is no file"),
        (lambda path: path.mkdir(), "is a folder"),
        (lambda path: path.write_bytes(b"\xff\xfe\x00"), r"not text in UTF-8[^.]*\s+Save the file"),
    ],
)
def test_files_that_cannot_be_read(tmp_path, make, says):
    make(tmp_path / "x.cu")
    with pytest.raises(GraderError, match=says):
        compile_kernel(tmp_path / "x.cu")


def test_an_unknown_device(file):
    with pytest.raises(GraderError, match="no device 'tpu'"):
        compile_kernel(file, "tpu")


def test_an_interrupted_build_leaves_nothing(file):
    def interrupted(command: Command) -> Finished:
        raise KeyboardInterrupt

    text = unseen()
    with pytest.raises(KeyboardInterrupt):
        compile_kernel(file, checks=False, text=text, run=interrupted)
    assert not compile_kernel(file, checks=False, text=text).cached


def test_a_compiler_that_never_ends(file, monkeypatch):
    monkeypatch.setattr("grader.frontend.toolchain.process._TIME_LIMIT", 0.01)
    with pytest.raises(GraderError, match="took longer than"):
        compile_kernel(file, checks=False, text=unseen())


def test_a_program_that_fails_says_so(tmp_path):
    (tmp_path / "fail.cu").write_text("int main() { return 3; }\n")
    kernel = Kernel(compile_kernel(tmp_path / "fail.cu", checks=False))
    with pytest.raises(GraderError, match="main: the program ended with status 3"):
        kernel.main()


def test_a_byte_order_mark_and_windows_lines(tmp_path):
    path = tmp_path / "windows.cu"
    path.write_bytes(b"\xef\xbb\xbf" + GOOD.replace("*= 2", "*= two").replace("\n", "\r\n").encode())
    with pytest.raises(BuildError, match=r"windows\.cu:3:24: error"):
        compile_kernel(path, checks=False)


def test_names_with_quotes_and_blanks(tmp_path):
    path = tmp_path / 'a "b" c.cu'
    path.write_text(GOOD.replace("*= 2", "*= two"))
    with pytest.raises(BuildError, match=r'a "b" c\.cu:3:24: error'):
        compile_kernel(path, checks=False)


def test_every_flag_of_a_build_with_nvcc_is_one_that_records_store(tmp_path):
    path = tmp_path / "good.cu"
    path.write_text(GOOD)
    nvcc = Compiler(("nvcc",), "nvcc", "13.0", "nvcc 13.0")
    flags = plan_kernel(path, "cuda", compiler=nvcc, arch="sm_90").flags
    assert set(flags) - set(build_module.arch_flags("sm_90")) == set(build_module.NVCC_FLAGS.split())


def test_the_architecture_flags():
    assert build_module.arch_flags("sm_90") == ("-gencode=arch=compute_90a,code=sm_90a",)
    assert build_module.arch_flags("sm_80") == ("-gencode=arch=compute_80,code=sm_80",)


# -- nvcc --------------------------------------------------------------------------------------------------------------

LAMBDA = (
    "template <typename F> __global__ void each(F f) { f(threadIdx.x); }\n%s\nvoid run() { each<<<1, 32>>>(%s); }\n"
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (GOOD, False),
        (LAMBDA % ("", "[] __device__(int i) {}"), True),
        (LAMBDA % ("#define HD __host__ __device__", "[=] /* by value */ HD(int i) {}"), True),
        (LAMBDA % ("#define EACH [] __device__(int i) {}", "EACH"), True),
        (
            GOOD + "void sort(int* x) { auto less = [&](int a, int b) { return x[a] < x[b]; }; }  // x[a] is less\n",
            False,
        ),
        ("#include <thrust/sort.h>\n" + GOOD, True),
        ("using namespace std;\n" + GOOD, True),
    ],
)
def test_nvcc_gets_the_flag_for_lambdas_if_there_may_be_one(text: str, expected: bool) -> None:
    assert build_module.may_have_extended_lambda(Source(text)) == expected


@pytest.mark.parametrize(
    ("output", "helps", "flags"),
    [
        ('twice.cu(3): error: namespace "std" has no member "vector"', True, [False, True]),
        ('twice.cu(3): error: namespace "std" has no member "vectr"', False, [False, True]),
        ('twice.cu(3): error: identifier "y" is undefined', False, [False]),
    ],
)
def test_nvcc_compiles_again_if_it_may_need_the_flag(
    file: Path, tmp_path: Path, output: str, helps: bool, flags: list[bool]
) -> None:
    """A file may use <vector> without including it: with the flag, cuda_runtime.h includes it."""
    given = []

    def run(command: Command) -> Finished:
        given.append("--extended-lambda" in command.argv)
        return Finished(0, "") if helps and given[-1] else Finished(1, output)

    plan = plan_kernel(file, "cuda", compiler=Compiler(("no-nvcc",), "nvcc", "13.0", "nvcc 13.0"), arch="sm_90")
    with contextlib.nullcontext() if helps else pytest.raises(BuildError, match=re.escape(output.split('"')[-2])):
        build_module.compile_directly(plan, open_cache(), tmp_path, run)
    assert given == flags


@pytest.mark.skipif(find_nvcc(required=False) is None, reason="nvcc is not installed")
def test_the_flag_for_lambdas_does_not_change_the_machine_code(tmp_path: Path) -> None:
    path = find("day01_residual_add/residual_add").solution
    plan = plan_kernel(path, "cuda", arch="sm_90")
    (tmp_path / "kernel.cu").write_text(plan.text)
    found = []
    for flags in (plan.flags, [flag for flag in plan.flags if flag != build_module.EXTENDED_LAMBDA]):
        command = [*plan.compiler.command, *flags, "-cubin", "-o", "kernel.cubin", "kernel.cu"]
        subprocess.run(command, cwd=tmp_path, check=True)
        with (tmp_path / "kernel.cubin").open("rb") as cubin:
            sections = ELFFile(cubin).iter_sections()
            found.append({s.name: s.data() for s in sections if s.name.startswith((".text.", ".nv.constant"))})
    assert found[0] == found[1] and any(name.startswith(".text.") for name in found[0])
