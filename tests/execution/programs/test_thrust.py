"""Thrust in complete programs: its results, and the findings of the checks."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.execution.programs.running import KERNELS, built, findings_of, refusal, without_findings

FILE = KERNELS / "thrust.cu"
EXPECTED = """\
elements 6 5 3 4 5 6 7 8 9 10
reduce 6 63 10 5 2
transform 1025 16384 10 16383
sum -1638.40
inclusive 6 11 14 18 23 29 36 44 53 63
exclusive 100 106 117 131 149 172 201 237 281 334
keys 3 2 1 1
values 0 2 1 3
runs 3 2 1
sums 0 2 4
values 0 22 42 9
values 0 22 42 9 -73
host 334 281 237 201 172 149 131 117
array 1 14
"""
# The lines of thrust_random.cu for the host, as printed by NVIDIA's Thrust 3.0 (nvcc 13.0, on a machine without a GPU).
NUMBERS = """\
5937333 16807 1886176553 0 0.37697373319135385 0.966370463 5 125738049 -0.434832697427 2.79653
863795715 282475249 723636564 0 0.034422702188065868 0.206100494 5 1252680455 0.442976383625 2.30685
1102272086 1622650073 1708580222 0 1.4042444787027728 0.0950816199 5 607563147 0.724311817742 2.97965
2121416982 984943658 546040233 0 -0.77448360135265037 0.634047151 1 1138715846 2.09512533763 2.68428
1260569617 1144108930 1530983891 0 -0.99043839843053216 0.849378884 3 119606386 0.0118149787537 1.9712
345788664 470211272 368443902 0 0.84638722831978219 0.985974729 6 659713383 2.59211154391 3.37647
"""
PARTITIONS = """\
copy 1 3 5 7 9
rest 0 2 4 6 8
stencil copy 1 6 8
rest 0 2 3 4 5 7 9
stencil 1 6 8 0 2 3 4 5 7 9
middle 3
stable 1 3 5 7 9
partitioned 1 5
sum 13 of 3
"""
SEARCHES = """\
values 2 0 1
searched 1 0 0
found 11 1
sums 1 2 3
"""
# The numbers of complex.cu for the host, as printed by a program that nvcc 13.0 built.
COMPLEX = """\
9 -3 -0.46154 -0.30769 9.5623 4.0311 -0 -0 8.2586 10.563 0.030769 -0.24615 11.5 3 -1.0777 -1.2478
0.53747 -2.7909 -15.75 4 2.2552 -3.0411 14.524 6 0.84088 0.70791 816 0 0 0 0 0
"""


def test_results_are_right_and_nothing_is_found(program: Path, capfd: pytest.CaptureFixture[str]) -> None:
    outcome = without_findings(program)
    assert outcome.exit_code == 0 and outcome.leaked == 0
    assert "".join(line.rstrip() + "\n" for line in capfd.readouterr().out.splitlines()) == EXPECTED


def test_random_numbers_and_partitions_are_those_of_thrust(capfd: pytest.CaptureFixture[str]) -> None:
    outcome = without_findings(built(FILE.with_name("thrust_random.cu")))
    assert outcome.exit_code == 0
    said = capfd.readouterr().out
    assert said == NUMBERS + 2 * PARTITIONS + NUMBERS + SEARCHES


def test_complex_numbers_are_those_of_nvidia(capfd: pytest.CaptureFixture[str]) -> None:
    outcome = without_findings(built(FILE.with_name("complex.cu")))
    assert outcome.exit_code == 0
    host, device = capfd.readouterr().out.splitlines()
    assert host.split() == device.split() == COMPLEX.split()


@pytest.mark.parametrize("compiler", ["", "clang++"])
def test_mistakes_are_reported_at_their_line(
    program: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, compiler: str
) -> None:
    if compiler and not shutil.which(compiler):
        pytest.skip(f"{compiler} is not installed")
    if compiler:
        monkeypatch.setenv("GRADER_CXX", compiler)
        program = built(FILE)
    findings = findings_of(program, "wrong", timeout=1000)
    assert capfd.readouterr().out.splitlines()[-1] == "thrust::device_reference: invalid argument"
    lines = FILE.read_text().splitlines()
    found = {(finding.kind, lines[finding.line - 1].strip()) for finding in findings}
    assert found == {
        ("out_of_bounds", "if (i < n) x[i] += 1;"),
        ("out_of_bounds", 'std::cout << thrust::reduce(d.begin(), d.begin() + 11) << "\\n";  // one element too many'),
        ("uninitialized_read", "thrust::copy(thrust::device, garbage, garbage + 10, d.begin());  // never initialized"),
        ("within_warp", "[=] __device__(int i) { raw[0] += i; });  // a race"),
        ("refused", 'std::cout << d[10] << "\\n";  // out of range: throws'),
    }
    assert all(finding.memory and finding.memory.bytes == 40 for finding in findings if finding.kind != "refused")


@pytest.mark.parametrize(
    ("code", "says"),
    [
        (
            "#include <thrust/random.h>\nthrust::linear_congruential_engine<unsigned, 1664525, 1, 4294967291u> engine;",
            "m % a < m / a",
        ),
        ("#include <thrust/set_operations.h>", "the simulator does not have this header of Thrust"),
        ("#include <cub/device/device_histogram.cuh>", "the simulator does not have CUB's device-wide functions"),
        ("#include <thrust/sort.h>\nvoid f(int* x) { thrust::shuffle(x, x + 9, 1); }", "shuffle"),
    ],
)
def test_unsupported_functions_are_named(code: str, says: str, tmp_path: Path) -> None:
    message = refusal(code, tmp_path).message
    assert says in message and message.startswith(f"one.cu:{code.count(chr(10)) + 1}:")
