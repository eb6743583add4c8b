"""Tests that mistakes with CUB, WMMA, PTX and cooperative groups are reported at the learner's line.

Other tests here count the shared-memory wavefronts of fragment loads and stores in correct kernels.
"""

from __future__ import annotations

import json

import numpy as np
import pytest

from grader.simulator.report import Report
from tests.simulator.harness import KERNELS


def report_of(kernel, launcher, *arguments) -> Report:
    outcome = kernel(launcher, *arguments)
    return Report.from_json(json.dumps(outcome.report), kernel.built.library, source=kernel.built.file)


@pytest.mark.parametrize(
    ("launcher", "dtype", "check", "line"),
    [
        ("storage", np.float32, "racecheck", "mistake: no __syncthreads() before"),
        ("early", np.float16, "racecheck", "mistake: no __syncwarp() before"),
        ("fragment", np.float16, "memcheck", "mistake: one row too far"),
        ("matrix", np.float16, "memcheck", "ldmatrix.sync"),
        ("unwaited", np.float32, "racecheck", "tile[127 - threadIdx.x]"),
        ("unordered", np.float32, "racecheck", "tile[127 - threadIdx.x]"),
        ("tile", np.float32, "racecheck", "tile[63 - threadIdx.x]"),
        ("divergent", np.float16, "synccheck", "__syncwarp();"),
    ],
)
def test_a_mistake_is_found_at_its_line(load, launcher, dtype, check, line):
    x, out = np.zeros(256, dtype=dtype), np.zeros(256, dtype=np.float32)
    findings = report_of(load("collective_mistakes", checks=True), launcher, x, out).findings
    assert check in {finding.check for finding in findings}
    assert line in "\n".join(str(finding) for finding in findings)


@pytest.mark.parametrize(
    ("launcher", "dtype", "padded", "load_requests", "load_wavefronts", "store_wavefronts"),
    [
        # ldmatrix is one request. Rows of 128 bytes begin in the same bank, so each row of a tile needs a wavefront.
        ("loads_f16", np.float16, False, 1, 32, 32),
        ("loads_f16", np.float16, True, 1, 4, 8),
        # 32 bits for each lane: one request for each of the four tiles.
        ("loads_bf16", np.uint16, False, 4, 32, 32),
        ("loads_bf16", np.uint16, True, 4, 4, 8),
    ],
)
def test_bank_conflicts_of_fragments(load, launcher, dtype, padded, load_requests, load_wavefronts, store_wavefronts):
    x, out = np.zeros((16, 72), dtype=dtype), np.zeros((16, 16), dtype=np.float32)
    report = report_of(load("wmma", checks=True), launcher, x, out, padded)
    lines = {word: line for line in report.lines for word in ("load", "store") if f"counted: {word}" in line.source}
    assert (lines["load"].shared_requests, lines["load"].shared_wavefronts) == (load_requests, load_wavefronts)
    assert (lines["store"].shared_requests, lines["store"].shared_wavefronts) == (4, store_wavefronts)
    assert lines["load"].ideal_shared_wavefronts == 4 and lines["store"].ideal_shared_wavefronts == 8


def test_fragments_are_registers(load):
    """Check that only loads, stores and copies are counted, because fragment elements are registers."""
    x, out = np.zeros((16, 72), dtype=np.float16), np.zeros((16, 16), dtype=np.float32)
    report = report_of(load("wmma", checks=True), "loads_f16", x, out, 1)
    source = (KERNELS / "wmma.cu").read_text().splitlines()
    counted = {source[line.line - 1].strip() for line in report.lines if line.accesses}
    assert all("tile[i]" in text or "counted" in text or "out[i]" in text for text in counted), counted
