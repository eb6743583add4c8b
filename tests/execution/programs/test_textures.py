"""Textures and surfaces: fetched values, compared with the CUDA programming guide's formulas in numpy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from grader.execution.programs.execute import execute
from grader.verdict.wording.findings import message
from tests.execution.programs.running import KERNELS, built, without_findings

FILE = KERNELS / "textures.cu"
PLACES = np.array([-3.3, -0.2, 0, 0.5, 1, 1.3, 2.75, 3.9, 4.1, 9], np.float32)
IMAGE = (np.arange(12.0) ** 2).reshape(3, 4)
BYTES = (8 * np.arange(32) % 256).reshape(2, 16)


def texel(image: np.ndarray, row: int, column: int, mode: str) -> float:
    inside = []
    for index, size in ((row, image.shape[0]), (column, image.shape[1])):
        if mode == "border" and not 0 <= index < size:
            return -1.0
        period = list(range(size)) + list(range(size))[::-1]
        modes = {"wrap": index % size, "mirror": period[index % (2 * size)]}
        inside.append(modes.get(mode, min(max(index, 0), size - 1)))
    return float(image[inside[0], inside[1]])


def sample(image: np.ndarray, x: float, y: float, mode: str, linear: bool) -> float:
    if not linear:
        return texel(image, int(np.floor(y)), int(np.floor(x)), mode)
    column, row = int(np.floor(x - 0.5)), int(np.floor(y - 0.5))
    a, b = (np.floor((v - 0.5 - np.floor(v - 0.5)) * 256 + 0.5) / 256 for v in (x, y))
    top, bottom = (
        (1 - a) * texel(image, r, column, mode) + a * texel(image, r, column + 1, mode) for r in (row, row + 1)
    )
    return float((1 - b) * top + b * bottom)


def test_fetches_give_what_the_guide_says(program: Path, capfd: pytest.CaptureFixture[str]) -> None:
    without_findings(program)
    said = [line.split() for line in capfd.readouterr().out.splitlines()]
    modes = ["clamp", "border", "clamp", "border", "wrap", "mirror"]
    for line, mode in zip(said[:6], modes, strict=True):
        y = 1.5 * 3 if line[0] == "normalized" else 1.5
        expected = [sample(IMAGE, x, y, mode, line[0] != "point") for x in PLACES]
        np.testing.assert_allclose(np.array(line[1:], float), expected, rtol=1e-5, err_msg=f"{line[0]} {mode}")
    expected = [sample(BYTES, x, 1.5, "clamp", False) for x in PLACES]
    np.testing.assert_array_equal(np.array(said[6][1:], float), expected)
    expected = [sample(BYTES, x, 1.5, "clamp", True) / 255 for x in PLACES]
    np.testing.assert_allclose(np.array(said[7][1:], float), expected, rtol=1e-5)
    assert said[8] == ["fetch", "0", "-3.3", "-0.2", "0", "0.5", "0"]
    assert said[9] == ["volume", "18.5"] and said[10] == ["layers", "0", "36", "36"]
    pixels = BYTES.reshape(2, 4, 4)[:, ::-1].copy()
    pixels[..., :3] = 255 - pixels[..., :3]
    assert said[11] == ["surface", *map(str, pixels.ravel())]


def test_texels_that_were_never_written_and_places_off_a_surface_are_found(program: Path) -> None:
    lines = FILE.read_text().splitlines()
    unwritten, off = execute(program, ["nothing"]), execute(program, ["one", "two"])
    assert unwritten.report is not None and off.report is not None
    assert {finding.kind for finding in unwritten.report.findings} == {"uninitialized_read"}
    assert {lines[finding.line - 1].split()[-2] for finding in unwritten.report.findings} == {"x[i],"}
    [finding] = off.report.findings
    assert "off_the_surface" in lines[finding.line - 1] or "surf2Dwrite(1.0f" in lines[finding.line - 1]
    assert "byte 64, row 0, layer 0 is outside a surface of 16 bytes, 2 rows, 1 layers" in message(finding)


def test_texture_references_read_what_they_are_bound_to(capfd: pytest.CaptureFixture[str]) -> None:
    outcome = without_findings(built(FILE.parent / "texture_references.cu"))
    assert outcome.status == 0
    said = np.array(capfd.readouterr().out.split(), float).reshape(4, 5)
    image, colors, numbers, rows = [1.5, 3, 6, 8], [0, 0.2, 0.4, 1], [10, 11, 12, 0], [9, 11, 13, 15]
    np.testing.assert_allclose(said.T, [image, colors, [1, 0.8, 0.6, 0], numbers, rows], rtol=1e-6)
