"""Building in a separate process gives the same messages as building in threads, and leaves no processes behind."""

from __future__ import annotations

import pickle
import signal
import threading
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from grader.execution.build import build
from grader.execution.build.build import BuildPlan, BuiltKernel
from grader.execution.build.diagnostics import CompileError
from grader.execution.jail import compiling
from grader.execution.jail.running import Jail
from grader.execution.runner import tiers
from grader.execution.runner.tiers import InForce
from grader.frontend.messages import RewriteError
from grader.frontend.prototype import PrototypeError
from grader.frontend.toolchain import ahead
from grader.frontend.toolchain.compilers import Compiler
from grader.judge import build_threads
from grader.judge.build_job import Building, Job
from grader.judge.build_process import Process
from grader.judge.build_threads import Threads
from grader.setup.errors import BuildError, GraderError

RIGHT = '__global__ void k(int* x) { *x = 1; }\nextern "C" void f(int* x) { k<<<1, 1>>>(x); }\n'
REFUSED = {
    "the compiler": RIGHT.replace("*x = 1", "*x = y"),
    "the front end": RIGHT.replace("*x = 1", 'asm("no.such.instruction;")'),
    "the prototype": 'extern "C" void f(std::string x) {}\n',
    "the linker": RIGHT.replace("k<<<", "void g(); g(); k<<<"),
}


def outcome(future: Future[Any]) -> tuple[object, ...]:
    if (error := future.exception(timeout=120)) is not None:
        assert isinstance(error, GraderError)
        return type(error), error.message, error.hint, getattr(error, "diagnostics", ())
    return (future.result(),)


@pytest.mark.parametrize("why", REFUSED)
def test_errors_are_those_of_threads(tmp_path: Path, why: str) -> None:
    path = tmp_path / "k.cu"
    path.write_text(REFUSED[why])
    job = Job(path, "cpu", "sm_80", ask_nvcc=False)
    both: list[Building] = [Threads(job), Process(job)]
    threads, process = (outcome(building.kernel) for building in both)
    assert threads == process and issubclass(threads[0], BuildError)  # type: ignore[arg-type]
    assert outcome(both[0].jail) == outcome(both[1].jail) and outcome(both[0].runner) == outcome(both[1].runner)


def test_a_kernel_for_a_gpu_compiles_before_the_gpus_jail_is_tested(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Compile in the jail of the simulator's kernels: building and testing the one with a GPU takes seconds."""
    path = tmp_path / "k.cu"
    path.write_text(RIGHT)
    compiled = threading.Event()
    built: list[str] = []

    def in_force(arch: str | None = None) -> InForce:
        assert arch is None or compiled.wait(timeout=120)
        return InForce(Jail("landlock", gpu=arch is not None))

    def compile_in(plan: BuildPlan, compile_into: Any) -> BuiltKernel:
        assert compile_into.keywords["run"] == "the compiler of landlock without a GPU"
        return BuiltKernel(plan, path, None, False)

    monkeypatch.setattr(build_threads, "gpu_architecture", lambda needed: "sm_90")
    monkeypatch.setattr(tiers, "in_force", in_force)
    described = "the compiler of {0.tier} without a GPU"
    monkeypatch.setattr(compiling, "run_in", lambda jail: "another" if jail.gpu else described.format(jail))
    monkeypatch.setattr(build_threads, "build", compile_in)
    monkeypatch.setattr(build_threads, "build_runner", lambda device, arch: built.append(f"{device} {arch}") or path)
    monkeypatch.setattr(build_threads, "compile_kernel", lambda file, *_, **more: built.append(f"{file.name} {more}"))
    monkeypatch.setattr(build, "find_nvcc", lambda: Compiler(("nvcc",), "nvcc", "13.0", "nvcc 13.0"))
    building = Threads(Job(path, "cuda", "sm_80", ask_nvcc=False))
    assert building.kernel.result(timeout=120).launchers[0].name == "f"
    compiled.set()
    assert building.jail.result(timeout=120).jail.gpu and building.runner.result(timeout=120) == path
    assert sorted(built) == ["cuda sm_90", "do_nothing.cu {'arch': 'sm_90'}"]


@pytest.mark.parametrize(
    "error", [RewriteError(3, 4, "m", "h", source_line="x"), PrototypeError("m", "h"), CompileError("m", "h")]
)
def test_errors_go_through_a_pipe(error: GraderError) -> None:
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error) and vars(copy) == vars(error) and str(copy) == str(error)


def test_a_stopped_build_process_leaves_no_compiler(tmp_path: Path) -> None:
    path = tmp_path / "k.cu"
    depth = "template <int N> struct T { static const long x = T<N - 1>::x + T<N - 2>::x * N; };\n"
    path.write_text(f"// {tmp_path}\n" + "".join(depth.replace("T", f"T{i}") for i in range(3000)) + RIGHT)
    ahead.start()
    (process,) = ahead._waiting
    building = Process(Job(path, "cpu", "sm_80", ask_nvcc=False))
    building.jail.result(timeout=120)
    building.stop()
    assert process.poll() is not None
    assert isinstance(building.kernel.exception(timeout=120), GraderError)


def test_a_build_process_without_a_job_ends_with_its_parent() -> None:
    ahead.start()
    process = ahead.take()
    assert process.stdin and process.stdout
    process.stdin.close()
    assert process.stdout.read() == b"" and process.wait(timeout=120) == 0


def test_a_killed_build_process_is_an_error_of_the_grader(tmp_path: Path) -> None:
    path = tmp_path / "k.cu"
    path.write_text(RIGHT)
    ahead.start()
    (process,) = ahead._waiting
    process.send_signal(signal.SIGSTOP)
    building = Process(Job(path, "cpu", "sm_80", ask_nvcc=False))
    process.kill()
    assert "has ended early" in str(building.kernel.exception(timeout=120))
