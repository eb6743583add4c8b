"""load_kernel builds a file once with load_inline and then uses the cache. It checks arguments and reports mistakes."""

import os
import subprocess
import sys
import uuid
from pathlib import Path

import pytest
import torch

from grader import load_kernel
from grader.execution.in_process.kernel import find_kernel_file
from grader.setup.errors import BuildError, GraderError, KernelFinding
from grader.verdict.wording.findings import text

ROOT = Path(__file__).parents[3]
SOURCE = """__global__ void add_kernel(const float* x, const float* y, float* out, long long n) {
    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i < n) out[i] = x[i] + y[i];
}
__global__ void show_kernel(const int* x) { printf("x[%d] = %d\\n", threadIdx.x, x[threadIdx.x]); }

extern "C" void add(const float* x, const float* y, float* out, long long n, cudaStream_t stream) {
    if (n == 0) return;
    add_kernel<<<(n + 127) / 128, 128, 0, stream>>>(x, y, out, n);
}
extern "C" void show(const int* x, int n, cudaStream_t stream) { show_kernel<<<1, n, 0, stream>>>(x); }
extern "C" void is_null(const float* x, int* out) { out[0] = x == nullptr; }
extern "C" void alignment(const float* x, int* out) { out[0] = reinterpret_cast<size_t>(x) % 256; }
"""


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("kernels") / "add.cu"
    path.write_text(SOURCE)
    return path


@pytest.fixture(scope="module")
def kernel(file):
    return load_kernel(file, checks=False)


def unseen(path: Path, text: str) -> Path:
    """Write a text that is in no build cache to the file, and return the file."""
    path.write_text(f"{text}// {uuid.uuid4()}\n")
    return path


def python(program: str, **environment: str) -> subprocess.CompletedProcess:
    """Run a program in a new Python interpreter."""
    env = {**os.environ, **environment}
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT, env=env)


# -- building ----------------------------------------------------------------------------------------------------------


def test_a_miss_goes_through_load_inline_and_a_hit_does_not(tmp_path):
    path = unseen(tmp_path / "add.cu", SOURCE)
    # load_inline does not quote the path of torch, so the build bypasses load_inline if that path has a space. This
    # link gives torch's libraries a path without a space.
    (tmp_path / "lib").symlink_to(Path(torch.__file__).parent / "lib")
    program = (
        "import sys; from unittest import mock; from torch.utils import cpp_extension; from grader import load_kernel\n"
        f"cpp_extension.TORCH_LIB_PATH = {str(tmp_path / 'lib')!r}\n"
        "with mock.patch.object(cpp_extension, 'load_inline', wraps=cpp_extension.load_inline) as spy:\n"
        f"    load_kernel({str(path)!r}, checks=False); load_kernel({str(path)!r}, checks=False)\n"
        "(call,) = spy.call_args_list\n"
        "assert call.kwargs['functions'] is None and call.kwargs['no_implicit_headers'] is True\n"
        "assert call.kwargs['is_python_module'] is False\n"
    )
    done = python(program)
    assert done.returncode == 0, done.stderr
    program = (
        f"import sys, torch; from grader import load_kernel; load_kernel({str(path)!r}, checks=False)\n"
        "assert 'torch.utils.cpp_extension' not in sys.modules and 'setuptools' not in sys.modules\n"
    )
    done = python(program)
    assert done.returncode == 0, done.stderr


def test_torch_may_be_in_a_folder_with_any_name(tmp_path):
    """load_inline does not quote the path of torch's libraries.

    So the build passes the path of a symbolic link, which has no special characters.
    """
    place = tmp_path / "it's $HOME; (really) a folder for Übungen"
    place.mkdir()
    (place / "lib").symlink_to(Path(torch.__file__).parent / "lib")
    path = unseen(place / "add.cu", SOURCE)
    program = (
        "import torch; from torch.utils import cpp_extension; from grader import load_kernel\n"
        f"cpp_extension.TORCH_LIB_PATH = {str(place / 'lib')!r}\n"
        f"x, out = torch.ones(4), torch.zeros(4); load_kernel({str(path)!r}, checks=False).add(x, x, out, 4)\n"
        "assert out.tolist() == [2, 2, 2, 2]\n"
    )
    done = python(program, GRADER_CACHE=str(place / "cache"))
    assert done.returncode == 0, done.stderr


def test_ninja_need_not_be_on_the_path(tmp_path):
    path = unseen(tmp_path / "add.cu", SOURCE)
    done = python(f"from grader import load_kernel; load_kernel({str(path)!r}, checks=False)", PATH="/usr/bin:/bin")
    assert done.returncode == 0, done.stderr


def test_a_cuda_toolkit_without_a_gpu_is_not_mentioned(tmp_path):
    """A PyTorch built for CUDA prints "No CUDA runtime is found".

    That must not appear in the output of a lesson's cell.
    """
    toolkit = tmp_path / "cuda"
    toolkit.mkdir()
    path = unseen(tmp_path / "add.cu", SOURCE)
    program = (
        "import torch; from grader import load_kernel\n"
        "torch.version.cuda, torch.cuda._is_compiled, torch.cuda.is_available = '13.0', lambda: True, lambda: False\n"
        f"load_kernel({str(path)!r}, checks=False)\n"
        "from torch.utils import cpp_extension; print(cpp_extension.CUDA_HOME)\n"
    )
    done = python(program, CUDA_HOME=str(toolkit))
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, str(toolkit), "")


def test_the_environment_is_left_as_it_was(tmp_path):
    before = dict(os.environ)
    load_kernel(unseen(tmp_path / "add.cu", SOURCE), checks=False)
    assert dict(os.environ) == before


def test_the_library_of_load_inline_needs_no_torch(kernel):
    needed = subprocess.run(["ldd", kernel._built.library], capture_output=True, text=True, check=True).stdout
    names = [line.split()[0] for line in needed.splitlines()]
    assert any(name.startswith("libsim-") for name in names)
    assert not any("torch" in name or "c10" in name for name in names), names


def test_a_syntax_error_is_at_the_learners_line(tmp_path):
    path = unseen(tmp_path / "add.cu", SOURCE.replace("x[i] + y[i];", "x[i] + z[i];"))
    with pytest.raises(BuildError, match=r"add\.cu:3:32: error: 'z' was not declared|use of undeclared identifier 'z'"):
        load_kernel(path, checks=False)
    path = unseen(path, SOURCE)
    load_kernel(path, checks=False)  # the failed build left nothing that hinders the next one


def test_an_edited_file_is_built_again(tmp_path):
    x, out = torch.ones(4), torch.zeros(4)
    path = unseen(tmp_path / "add.cu", SOURCE)
    load_kernel(path, checks=False).add(x, x, out, 4)
    assert out[0] == 2
    unseen(path, SOURCE.replace("x[i] + y[i];", "x[i] - y[i];"))
    load_kernel(path, checks=False).add(x, x, out, 4)
    assert out[0] == 0


def test_two_files_with_the_same_names_do_not_mix(tmp_path):
    x, out = torch.ones(4), torch.zeros(4)
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    plus = load_kernel(unseen(tmp_path / "a" / "add.cu", SOURCE), checks=False)
    minus = load_kernel(unseen(tmp_path / "b" / "add.cu", SOURCE.replace("x[i] + y", "x[i] - y")), checks=False)
    plus.add(x, x, out, 4)
    assert out[0] == 2
    minus.add(x, x, out, 4)
    assert out[0] == 0
    plus.add(x, x, out, 4)
    assert out[0] == 2


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("__global__ void k() {}\n", "has no launcher"),
        ("#include <thrust/sort.h>\n", r"add\.cu:1:1: error: #include <thrust/sort\.h>"),
        ('extern "C" void f(float& x) {}\n', "line 1: launcher f: the parameter 'float& x' is a reference"),
    ],
)
def test_files_that_cannot_be_loaded(tmp_path, text, says):
    with pytest.raises(GraderError, match=says):
        load_kernel(unseen(tmp_path / "add.cu", text))


def test_no_compiler(file, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    for name in ("GRADER_CXX", "CXX"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(GraderError, match=r"no C\+\+ compiler"):
        load_kernel(file)


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU")
def test_no_gpu(file):
    with pytest.raises(GraderError, match="no GPU") as caught:
        load_kernel(file, device="cuda")
    assert "device='cpu'" in caught.value.hint


# -- files -------------------------------------------------------------------------------------------------------------


def test_paths_from_the_root_of_the_course(monkeypatch):
    monkeypatch.chdir(ROOT / "tests")
    name = "solutions/day01_residual_add/residual_add.cu"
    assert find_kernel_file(name).resolve() == (ROOT / name).resolve()
    monkeypatch.chdir(ROOT / "solutions" / "day01_residual_add")
    assert find_kernel_file("residual_add.cu").exists() and find_kernel_file(name).exists()


def test_no_such_file(tmp_path, monkeypatch):
    with pytest.raises(GraderError, match=r"there is no file .*nothing\.cu"):
        load_kernel(tmp_path / "nothing.cu")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(GraderError, match=r"there is no file nothing\.cu") as caught:
        load_kernel("nothing.cu")
    assert "root of the course" in caught.value.hint


# -- calls -------------------------------------------------------------------------------------------------------------


def test_a_call(kernel):
    x, y, out = torch.randn(1000), torch.randn(1000), torch.zeros(1000)
    kernel.add(x, y, out, 1000)
    torch.testing.assert_close(out, x + y)
    kernel.add(x, y=y, out=out, n=1000)
    torch.testing.assert_close(out, x + y)


def test_one_tensor_for_two_parameters(kernel):
    x, y = torch.randn(300), torch.randn(300)
    expected = x + y
    kernel.add(x, y, x, 300)
    torch.testing.assert_close(x, expected)


def test_views_of_one_tensor(kernel):
    both, out = torch.randn(2, 300), torch.zeros(300)
    kernel.add(both[0], both[1], out, 300)
    torch.testing.assert_close(out, both.sum(0))
    with pytest.raises(GraderError, match="the memory of y and x overlaps"):
        kernel.add(both.view(-1)[:300], both.view(-1)[100:400], out, 300)


def test_empty_tensors_and_null_pointers(kernel):
    empty, out = torch.zeros(0), torch.zeros(1, dtype=torch.int32)
    kernel.add(empty, empty, empty, 0)
    kernel.is_null(None, out)
    assert out.item() == 1
    kernel.is_null(torch.zeros(3), out)
    assert out.item() == 0


def test_a_slice_keeps_its_alignment(kernel):
    out = torch.zeros(1, dtype=torch.int32)
    x = torch.zeros(100)
    for start in (0, 1, 4, 65):
        kernel.alignment(x[start:], out)
        assert out.item() == 4 * start % 256


def test_what_kernels_print_is_shown(kernel, capsys):
    kernel.show(torch.tensor([7, 8], dtype=torch.int32), 2)
    assert sorted(capsys.readouterr().out.splitlines()) == ["x[0] = 7", "x[1] = 8"]


def test_a_whole_program_prints(tmp_path, capsys):
    path = tmp_path / "hello.cu"
    path.write_text(
        "#include <cstdio>\n"
        '__global__ void hello() { printf("thread %d\\n", threadIdx.x); }\n'
        "int main(int argc, char** argv) { hello<<<1, 2>>>(); cudaDeviceSynchronize(); return argc - 1; }\n"
    )
    load_kernel(path, checks=False).main()
    assert sorted(capsys.readouterr().out.splitlines()) == ["thread 0", "thread 1"]  # in any order


def test_a_launch_that_is_refused(kernel):
    with pytest.raises(GraderError, match="block is too large"):
        kernel.show(torch.zeros(2000, dtype=torch.int32), 2000)
    kernel.show(torch.zeros(1, dtype=torch.int32), 1)  # the error does not affect later calls


def test_wrong_arguments_name_the_parameter(kernel):
    x = torch.zeros(3)
    with pytest.raises(GraderError, match="add: y is const float"):
        kernel.add(x, x.double(), x, 3)
    with pytest.raises(GraderError, match=r"missing out, n"):
        kernel.add(x, x)


def test_launchers_are_listed(kernel):
    assert {"add", "show", "is_null", "alignment"} <= set(dir(kernel))
    assert "void add(const float* x, const float* y, float* out, long long n, cudaStream_t stream)" in repr(kernel)
    assert str(kernel.add) == kernel.add.__doc__
    with pytest.raises(AttributeError, match=r"add\.cu has no launcher sub; it has add, show"):
        kernel.sub()


def test_no_report_before_the_first_call(file):
    with pytest.raises(GraderError, match="nothing was called yet"):
        load_kernel(file, checks=False).report  # noqa: B018


# -- checks ------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def checked(tmp_path_factory):
    path = tmp_path_factory.mktemp("kernels") / "add.cu"
    path.write_text(SOURCE.replace("if (i < n)", "if (i <= n)"))
    return path


def test_a_finding_is_raised_and_kept(checked):
    kernel = load_kernel(checked)
    x, out = torch.ones(100), torch.zeros(100)
    with pytest.raises(KernelFinding, match=r"0 bytes past the end of \w+\[100\] \(float32\) at add\.cu:3"):
        kernel.add(x, x, out, 100)
    assert {finding.line for finding in kernel.report.findings} == {3}
    assert "out[i] = x[i] + y[i];" in text(kernel.report.findings[0])


def test_a_finding_may_be_left_in_the_report(checked):
    kernel = load_kernel(checked, raise_on_finding=False)
    x, out = torch.ones(100), torch.zeros(100)
    kernel.add(x, x, out, 100)
    assert kernel.report.findings and (out == 2).all()


def test_the_report_counts_the_last_call(file):
    kernel = load_kernel(file)
    x, out = torch.ones(256), torch.zeros(256)
    for n in (256, 128):
        kernel.add(x, x, out, n)
        assert kernel.report.totals["launches"] == 1
        assert sum(line.requests for line in kernel.report.lines if line.line == 3) == 3 * n / 32
        assert {item.name for item in kernel.report.requests(3)} == {"x", "out"}


def test_without_checks_nothing_is_counted(kernel):
    kernel.add(torch.ones(4), torch.ones(4), torch.ones(4), 4)
    assert kernel.report.findings == [] and kernel.report.lines == []


def test_a_write_to_an_input_is_a_finding(tmp_path):
    path = tmp_path / "add.cu"
    path.write_text(SOURCE.replace("out[i] = x[i]", "out[i] = const_cast<float*>(x)[i] = x[i]"))
    kernel = load_kernel(path)
    x, out = torch.ones(8), torch.zeros(8)
    with pytest.raises(KernelFinding, match=r"x\[0\]"):
        kernel.add(x, torch.ones(8), out, 8)
