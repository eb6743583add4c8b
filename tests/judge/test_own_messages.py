"""Failures that have special messages, such as a kernel that exhausts the memory, which ends a check early."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from grader.execution.jail import compiling
from grader.judge import cases, check
from grader.report.terminal import as_text
from tests.attacks.conftest import HERE, exercise

KERNEL = (HERE / "prelude.cu").read_text()
LAUNCHER = 'extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) {{\n{}\n}}\n'


def said(tmp_path: Path, include: str, body: str) -> str:
    file = tmp_path / "twice.cu"
    file.write_text(include + KERNEL + LAUNCHER.format(body))
    return " ".join(as_text(check(exercise(), file, seed=1)).split())


def test_a_thread_of_the_host(tmp_path: Path) -> None:
    text = said(tmp_path, "#include <thread>\n", "std::thread t([=] { reward(x, out, n, stream); }); t.join();")
    assert "starts a host thread: a launcher may only launch kernels" in text


def test_an_exception_of_the_launcher(tmp_path: Path) -> None:
    assert "The launcher threw a C++ exception. Catch it" in said(tmp_path, "", "throw 1;")


@pytest.mark.parametrize(
    ("status", "output", "says"),
    [
        (1, "cc1plus: out of memory allocating 65536 bytes after a total of 9 bytes\n", "2048 MB"),
        (1, "virtual memory exhausted: Cannot allocate memory\n", "2048 MB"),
        (-signal.SIGXCPU, "", "60 s of processor time"),
        (128 + signal.SIGXCPU, "", "60 s of processor time"),
        (1, "g++: fatal error: CPU time limit exceeded signal terminated program cc1plus\n", "60 s of processor time"),
        (1, "kernel.cu:1:1: error: no\n", ""),
        (-signal.SIGSEGV, "", ""),
    ],
)
def test_a_limit_is_named_only_if_it_was_exceeded(status: int, output: str, says: str) -> None:
    assert compiling._limit(status, output) == says


def test_exhausted_memory_counts_as_a_failure_to_stop_early(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cases, "MOST_CRASHES", 1)
    monkeypatch.setattr(cases, "CHILDREN", 1)
    monkeypatch.setattr("grader.execution.runner.client.MOST_MEMORY", 1)
    file = tmp_path / "twice.cu"
    file.write_text(KERNEL + LAUNCHER.format("for (volatile int i = 0; i < 2000000000; ++i) {}"))
    verdict = check(exercise(), file, seed=1)
    problems = [case.problem for case in verdict.stage("correct").cases]
    if verdict.isolation == "none":
        pytest.skip("no jail here: memory is not watched")
    assert "oom" in problems and "after_crashes" in problems
