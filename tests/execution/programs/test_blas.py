"""cuBLAS in complete programs, compared with numpy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from grader.cli.app import run
from grader.execution.programs.build import Options, build_program, compile_unit
from grader.execution.programs.execute import execute
from grader.execution.programs.files import unit
from grader.setup.errors import GraderError

FILE = Path(__file__).parent / "kernels" / "blas.cu"


@pytest.fixture(scope="module")
def program() -> Path:
    return build_program([unit(FILE, (), ())], Options())


def values(n: int, seed: int) -> np.ndarray:
    return ((np.arange(n) * 7 + seed) % 11 - 5).astype(float)


def matrix(memory: np.ndarray, rows: int, columns: int, ld: int) -> np.ndarray:
    """Return a column-major matrix in memory as a numpy view."""
    return np.lib.stride_tricks.as_strided(memory, (rows, columns), (8, 8 * ld))


def test_results_are_numpys(program: Path, capfd: pytest.CaptureFixture[str]) -> None:
    outcome = execute(program)
    assert outcome.report is not None and outcome.report.findings == []
    lines = [line.split() for line in capfd.readouterr().out.splitlines()]
    said = {line[0]: np.array(line[1:], float) for line in lines[:3] + lines[4:6]}
    m, n, k = 4, 3, 5
    a, b, c = values(64, 1), values(64, 2), values(64, 3)
    for form in range(4):
        left = matrix(a, k, m, 6).T if form & 1 else matrix(a, m, k, 6)
        right = matrix(b, n, k, 6).T if form & 2 else matrix(b, k, n, 6)
        view = matrix(c, m, n, 6)
        view[:] = 2 * left @ right + 0.5 * view
    np.testing.assert_allclose(said["sgemm"], c[:18], rtol=1e-5)
    x, y, held = values(20, 4), values(20, 5), values(40, 6)
    view = matrix(held, m, k, 6)
    y[:10:3] = -3 * view @ x[:10:2] - 3 * y[:10:3]
    y[:5] = -3 * view.T @ x[:4] - 3 * y[:5]
    view[:] += -3 * np.outer(x[:4], y[:10:2])
    y[:5] += -3 * x[:10:2]
    x[:4] *= -3
    np.testing.assert_allclose(said["dgemv"], y)
    np.testing.assert_allclose(said["dger"], held)
    dot, norm, largest = lines[3][1::2]
    np.testing.assert_allclose([float(dot), float(norm)], [x[:6] @ y[:18:3], np.linalg.norm(x[:6])], rtol=1e-5)
    assert int(largest) == np.argmax(np.abs(x[:6])) + 1
    h = values(64, 7)
    products = [2 * matrix(h[6 * i :], 2, 3, 2) @ matrix(h[6 * i :], 2, 3, 2).T for i in range(3)]
    np.testing.assert_allclose(said["batched"], np.concatenate([p.T.ravel() for p in products]))
    np.testing.assert_allclose(said["geam"], (2 * matrix(a, 2, 3, 2)).ravel())


def test_incorrect_calls_are_reported_at_their_line(program: Path, capfd: pytest.CaptureFixture[str]) -> None:
    report = execute(program, ["wrong"]).report
    assert report is not None
    said = capfd.readouterr().out.splitlines()[-4:]
    failed = "CUBLAS_STATUS_EXECUTION_FAILED"
    assert said == [failed, failed, "CUBLAS_STATUS_INVALID_VALUE", "no error"]
    refused = [finding for finding in report.findings if finding.kind == "refused"]
    assert len(refused) == 3 and all(finding.source_line and finding.line for finding in refused)
    [race] = [finding for finding in report.findings if finding.check == "racecheck"]
    assert {race.work, race.other.work if race.other else ""} == {"cublasSscal", "cudaMemcpyAsync"}


LEGACY = """\
1 0 7
gemm 70 88 88 112
gemv 5 11 17
ger 0 0 0 -2 0 -4
axpy 1 1 3 0 5 -1
swap 1 3 5 4 5 6
dot 112 nrm2 7.81025 asum 24 amax 6
error 0
error 7 0
v2 3 9 15 12 15 18
created 0
async 1 3 5
"""


def test_the_legacy_api_calls_the_present_one(capfd: pytest.CaptureFixture[str]) -> None:
    program = build_program([unit(FILE.with_name("blas_legacy.cu"), (), ())], Options())
    outcome = execute(program)
    assert capfd.readouterr().out == LEGACY
    assert outcome.report is not None and outcome.leaked == 0
    [wrong] = outcome.report.findings  # the call with the operation 'x'
    assert wrong.kind == "refused" and "'x'" in (wrong.source_line or "")


def test_both_apis_cannot_be_included_together(tmp_path: Path) -> None:
    file = tmp_path / "one.cu"
    file.write_text("#include <cublas_v2.h>\n#include <cublas.h>\n")
    with pytest.raises(GraderError, match="cannot be included together"):
        compile_unit(unit(file, (), ()), Options())


def test_an_exercise_has_no_cublas(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "residual_add.cu"
    file.write_text("#include <cublas_v2.h>\n")
    assert run(["check", "day01_residual_add/residual_add", "--file", str(file)]) == 1
    assert "cuBLAS is not available in a kernel file" in " ".join(capfd.readouterr().out.split())
