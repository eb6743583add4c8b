"""Tests of the helper programs that read a kernel's library: their output and their time are limited."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from grader.execution.build.build import compile_kernel
from grader.simulator import symbolize, tools
from grader.simulator.line_table import _number
from tests.simulator.harness import KERNELS


def python(program: str, said: str = "") -> str | None:
    return tools.read_with([sys.executable, "-S", "-c", program], said)


def test_output_is_read() -> None:
    assert python("print(input() + '!')", "0x10\n") == "0x10!\n"
    assert python("print('\\x80')") == "\x80\n"


@pytest.mark.parametrize(
    "program",
    [
        "raise SystemExit(1)",
        "print('x' * 3_000_000, flush=True)",
        "x = bytearray(1 << 31); print(len(x))",
        "while True: pass",
    ],
    ids=["fails", "says too much", "too large", "endless"],
)
def test_output_beyond_the_limits_is_refused(program: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tools, "OUTPUT", 1 << 20)
    monkeypatch.setattr(tools, "MEMORY", 1 << 30)
    monkeypatch.setattr(tools, "SECONDS", 1)
    assert python(program) is None


def test_a_shell_may_have_lower_limits_of_its_own() -> None:
    program = (
        "import re, resource; from grader.simulator import tools; resource.setrlimit(resource.RLIMIT_CPU, (20, 20)); "
    )
    program += "print(tools.read_with(['true']), tools.Server(['cat']).ask('a', re.compile(b'a')))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == (" a\n", "")


END = re.compile(rb"^last .*\n\Z", re.MULTILINE)
ECHO = "while True: print(f'last {input()}', flush=True)"


def server(program: str) -> tools.Server:
    return tools.Server([sys.executable, "-S", "-c", program])


def test_a_server_is_reused_and_ends_with_its_last_user() -> None:
    echo = server(ECHO)
    process = echo._process
    assert [echo.ask(f"{i}\n", END) for i in range(3)] == ["last 0\n", "last 1\n", "last 2\n"]
    del echo
    assert process.returncode == -signal.SIGKILL


@pytest.mark.parametrize(
    "program",
    [
        "raise SystemExit(1)",
        "while True: print('x' * 3_000_000, flush=True)",
        "x = bytearray(1 << 31); input(); print('last')",
        "while True: pass",
        "import time; time.sleep(100)",
    ],
    ids=["ends", "says too much", "too large", "endless", "silent"],
)
def test_a_server_beyond_the_limits_is_not_used_again(program: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tools, "OUTPUT", 1 << 20)
    monkeypatch.setattr(tools, "MEMORY", 1 << 30)
    monkeypatch.setattr(tools, "SECONDS", 1)
    monkeypatch.setattr(tools, "PATIENCE", 0.1 if "sleep" in program else 100)
    asked = server(program)
    assert asked.ask("1\n", END) is None
    assert asked.ask("1\n", END) is None
    assert asked._process.returncode is not None


def test_addresses_looked_up_in_chunks_give_the_same_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = compile_kernel(KERNELS / "findings.cu", "cpu", checks=True)
    addresses = range(0x1000, 0x9000, 64)
    together = symbolize._addr2line(kernel.library, addresses)
    assert len({line for frames in together for _, line in frames}) > 20
    monkeypatch.setattr(symbolize, "_AT_ONCE", 7)
    assert symbolize._addr2line(kernel.library, addresses) == together
    assert [symbolize._addr2line(kernel.library, [address])[0] for address in addresses[:40]] == together[:40]


def test_a_forked_process_starts_its_own_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tools, "PATIENCE", 0.2)
    kernel = compile_kernel(KERNELS / "findings.cu", "cpu", checks=True)
    addresses = range(0x1000, 0x5000, 64)
    known = symbolize._addr2line(kernel.library, addresses)
    assert any(line for frames in known for _, line in frames)
    child = os.fork()
    alike = all(symbolize._addr2line(kernel.library, addresses[::-1]) == known[::-1] for _ in range(100))
    if child == 0:
        os._exit(0 if alike else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert alike and symbolize._addr2line(kernel.library, addresses) == known


def test_a_large_library_has_lines_but_no_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = compile_kernel(KERNELS / "findings.cu", "cpu", checks=True)
    symbolize._debug_info.cache_clear()
    monkeypatch.setattr(symbolize, "_LARGEST_SECTIONS", {".debug_line": 10})
    with pytest.raises(ValueError, match="too large"):
        symbolize._debug_info(kernel.library)
    monkeypatch.setattr(symbolize, "LARGEST_LIBRARY", 10)
    with pytest.raises(ValueError, match="too large"):
        symbolize._debug_info(kernel.library)


def test_numbers_in_the_line_table_have_a_maximum_length() -> None:
    assert _number(b"\xe5\x8e\x26", 0) == (624485, 3)
    with pytest.raises(ValueError, match="more than 64 bits"):
        _number(b"\xff" * 1000, 0)


def test_a_line_is_a_number_of_few_digits() -> None:
    assert symbolize._file_and_line("a.cu:31 (discriminator 2)") == ("a.cu", 31)
    assert symbolize._file_and_line("a.cu:\u00b2") == ("a.cu", 0)
    assert symbolize._file_and_line(f"{Path('a.cu')}:{'9' * 5000}") == ("a.cu", 0)
