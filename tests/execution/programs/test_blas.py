"""cuBLAS in complete programs, compared with numpy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from grader.cli.app import run
from grader.execution.programs.execute import execute
from tests.execution.programs.running import KERNELS, built, findings_of, refusal, without_findings

FILE = KERNELS / "blas.cu"


def values(n: int, seed: int) -> np.ndarray:
    return ((np.arange(n) * 7 + seed) % 11 - 5).astype(float)


def matrix(memory: np.ndarray, rows: int, columns: int, ld: int) -> np.ndarray:
    """Return a column-major matrix in memory as a numpy view."""
    return np.lib.stride_tricks.as_strided(memory, (rows, columns), (8, 8 * ld))


def test_results_are_numpys(program: Path, capfd: pytest.CaptureFixture[str]) -> None:
    without_findings(program)
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
    findings = findings_of(program, "wrong")
    said = capfd.readouterr().out.splitlines()[-4:]
    failed = "CUBLAS_STATUS_EXECUTION_FAILED"
    assert said == [failed, failed, "CUBLAS_STATUS_INVALID_VALUE", "no error"]
    refused = [finding for finding in findings if finding.kind == "refused"]
    assert len(refused) == 3 and all(finding.source_line and finding.line for finding in refused)
    [race] = [finding for finding in findings if finding.check == "racecheck"]
    assert {race.work, race.other.work if race.other else ""} == {"cublasSscal", "cudaMemcpyAsync"}


def tf32(x: np.ndarray) -> np.ndarray:
    """Round to ten bits after the point."""
    fraction, exponent = np.frexp(x)
    return np.ldexp(np.rint(np.ldexp(fraction, 11)), exponent - 11)


def bf16(x: np.ndarray) -> np.ndarray:
    """Round to seven bits after the point."""
    fraction, exponent = np.frexp(x)
    return np.ldexp(np.rint(np.ldexp(fraction, 8)), exponent - 8)


@pytest.fixture(scope="module")
def lt_program() -> Path:
    return built(FILE.with_name("blas_lt.cu"))


def stored(memory: np.ndarray, rows: int, columns: int, row_order: bool) -> np.ndarray:
    """Return a matrix with the leading dimension 6 in column or row order as a numpy view."""
    return matrix(memory, columns, rows, 6).T if row_order else matrix(memory, rows, columns, 6)


def test_products_of_cublaslt_are_numpys(lt_program: Path, capfd: pytest.CaptureFixture[str]) -> None:
    without_findings(lt_program)
    said: dict[str, list[np.ndarray]] = {}
    for line in capfd.readouterr().out.splitlines():
        name, *numbers = line.split()
        said.setdefault(name, []).append(np.array(numbers, float))
    a, b, bias = values(64, 1), values(64, 2), values(8, 4)
    assert len(said["form"]) == 32
    for form, found in enumerate(said["form"]):
        left = stored(a, 5, 4, bool(form & 4)).T if form & 1 else stored(a, 4, 5, bool(form & 4))
        right = stored(b, 3, 5, bool(form & 8)).T if form & 2 else stored(b, 5, 3, bool(form & 8))
        d = values(32, 3)
        stored(d, 4, 3, bool(form & 16))[:] = left @ right
        np.testing.assert_allclose(found, d[:24], rtol=1e-6)
    product, with_bias = matrix(a, 4, 5, 6) @ matrix(b, 5, 3, 6), bias[:4, None]

    def gelu(x: np.ndarray) -> np.ndarray:
        return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))

    expected = [np.maximum(product, 0), product + with_bias, np.maximum(product + with_bias, 0)]
    expected += [gelu(product), gelu(product + with_bias)]
    for found, values_of in zip(said["epilogue"], expected, strict=True):
        np.testing.assert_allclose(matrix(found, 4, 3, 6), values_of, rtol=1e-6, atol=1e-7)
    c = values(32, 5)
    np.testing.assert_allclose(matrix(said["c"][0], 4, 3, 6), product + 0.5 * matrix(c, 4, 3, 6))
    np.testing.assert_allclose(matrix(said["half"][0], 4, 3, 6), matrix(a, 4, 5, 6) @ matrix(a, 5, 3, 6) + with_bias)


def test_compute_types_round_the_inputs(lt_program: Path, capfd: pytest.CaptureFixture[str]) -> None:
    execute(lt_program)
    lines = [line.split()[1:] for line in capfd.readouterr().out.splitlines() if line.startswith("compute")]
    exact, *rest = (np.array(line, float).reshape(3, 4).T for line in lines)
    scale = np.float32(1.0009765625) + np.float32(1 / 4096)
    a = matrix((values(64, 1).astype(np.float32) * scale).astype(float), 4, 5, 6)
    b = matrix((values(64, 2).astype(np.float32) * np.float32(0.1)).astype(float), 5, 3, 6)
    np.testing.assert_allclose(exact, a @ b, rtol=1e-6)
    for found, rounded in zip(rest, (tf32, bf16, lambda x: x.astype(np.float16).astype(float)), strict=True):
        np.testing.assert_allclose(found, rounded(a) @ rounded(b), rtol=1e-6)
        assert np.abs(found - exact).max() > 1e-4


def test_incorrect_products_have_the_status_of_cublas(lt_program: Path, capfd: pytest.CaptureFixture[str]) -> None:
    findings = findings_of(lt_program, "wrong")
    said = [line.removeprefix("CUBLAS_STATUS_") for line in capfd.readouterr().out.splitlines()]
    types = ["NOT_SUPPORTED"] * 3
    products = ["INVALID_VALUE"] * 4 + ["NOT_SUPPORTED"] * 2 + ["EXECUTION_FAILED", "INVALID_VALUE", "no error"]
    assert said == [*types, *products]
    refused = [finding for finding in findings if finding.kind == "refused"]
    assert len(refused) == 2 and all(finding.line for finding in refused)  # cublasGemmEx, and a bias on the host
    [race] = [finding for finding in findings if finding.check == "racecheck"]
    assert {race.work, race.other.work if race.other else ""} == {"cublasLtMatmul", "cudaMemcpyAsync"}


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
    program = built(FILE.with_name("blas_legacy.cu"))
    outcome = execute(program)
    assert capfd.readouterr().out == LEGACY
    assert outcome.report is not None and outcome.leaked == 0
    [wrong] = outcome.report.findings  # the call with the operation 'x'
    assert wrong.kind == "refused" and "'x'" in (wrong.source_line or "")


def test_both_apis_cannot_be_included_together(tmp_path: Path) -> None:
    problem = refusal("#include <cublas_v2.h>\n#include <cublas.h>\n", tmp_path)
    assert "cannot be included together" in problem.message


def test_an_exercise_has_no_cublas(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "residual_add.cu"
    file.write_text("#include <cublas_v2.h>\n")
    assert run(["check", "day01_residual_add/residual_add", "--file", str(file)]) == 1
    assert "cuBLAS is not available in a kernel file" in " ".join(capfd.readouterr().out.split())
