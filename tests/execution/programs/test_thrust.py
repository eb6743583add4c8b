"""Thrust in complete programs: its results, and the findings of the checks."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from grader.execution.programs.build import Options, build_program, compile_unit
from grader.execution.programs.execute import execute
from grader.execution.programs.files import unit
from grader.setup.errors import GraderError

FILE = Path(__file__).parent / "kernels" / "thrust.cu"
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


@pytest.fixture(scope="module")
def program() -> Path:
    return build_program([unit(FILE, (), ())], Options())


def test_results_are_right_and_nothing_is_found(program: Path, capfd: pytest.CaptureFixture[str]) -> None:
    outcome = execute(program)
    assert outcome.report is not None and outcome.report.findings == []
    assert outcome.exit_code == 0 and outcome.leaked == 0
    assert "".join(line.rstrip() + "\n" for line in capfd.readouterr().out.splitlines()) == EXPECTED


@pytest.mark.parametrize("compiler", ["", "clang++"])
def test_mistakes_are_reported_at_their_line(
    program: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, compiler: str
) -> None:
    if compiler and not shutil.which(compiler):
        pytest.skip(f"{compiler} is not installed")
    if compiler:
        monkeypatch.setenv("GRADER_CXX", compiler)
        program = build_program([unit(FILE, (), ())], Options())
    report = execute(program, ["wrong"], timeout=300).report
    assert report is not None
    assert capfd.readouterr().out.splitlines()[-1] == "thrust::device_reference: invalid argument"
    lines = FILE.read_text().splitlines()
    found = {(finding.kind, lines[finding.line - 1].strip()) for finding in report.findings}
    assert found == {
        ("out_of_bounds", "if (i < n) x[i] += 1;"),
        ("out_of_bounds", 'std::cout << thrust::reduce(d.begin(), d.begin() + 11) << "\\n";  // one element too many'),
        ("uninitialized_read", "thrust::copy(thrust::device, garbage, garbage + 10, d.begin());  // never initialized"),
        ("within_warp", "[=] __device__(int i) { raw[0] += i; });  // a race"),
        ("refused", 'std::cout << d[10] << "\\n";  // out of range: throws'),
    }
    assert all(
        finding.memory and finding.memory.bytes == 40 for finding in report.findings if finding.kind != "refused"
    )


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("#include <thrust/complex.h>", "the simulator does not have this header of Thrust"),
        ("#include <cub/device/device_histogram.cuh>", "the simulator does not have CUB's device-wide functions"),
        ("#include <thrust/sort.h>\nvoid f(int* x) { thrust::shuffle(x, x + 9, 1); }", "shuffle"),
    ],
)
def test_unsupported_functions_are_named(code: str, says: str, tmp_path: Path) -> None:
    file = tmp_path / "one.cu"
    file.write_text(code)
    with pytest.raises(GraderError) as caught:
        compile_unit(unit(file, (), ()), Options())
    assert says in caught.value.message and caught.value.message.startswith(f"one.cu:{code.count(chr(10)) + 1}:")
