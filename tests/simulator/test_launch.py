"""Tests of launches: thread and block indices, forms of launches, and CUDA's limits."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest

from grader.simulator.report import Report
from grader.verdict.wording import findings

INVALID_VALUE = 1


@pytest.mark.parametrize(
    ("grid", "block"),
    [
        ((1, 1, 1), (1, 1, 1)),
        ((3, 1, 1), (65, 1, 1)),
        ((2, 3, 4), (5, 3, 2)),
        ((1, 2, 1), (32, 32, 1)),
        ((2, 1, 2), (1, 1, 64)),
    ],
)
def test_every_thread_has_its_indices(load, schedule, grid, block):
    kernel = load("identity")
    kernel.configure(**schedule)
    out = np.full((np.prod(grid), np.prod(block), 12), -1, dtype=np.int32)
    assert kernel("identity", out, *grid, *block).error == 0
    expected = [
        [[bx, by, bz, tx, ty, tz, *block, *grid] for tz, ty, tx in itertools.product(*map(range, block[::-1]))]
        for bz, by, bx in itertools.product(*map(range, grid[::-1]))
    ]
    np.testing.assert_array_equal(out, np.array(expected))


@pytest.mark.parametrize("n", [1, 63, 64, 1000])
def test_launches_of_templates_and_lambdas(load, n):
    out = np.arange(n, dtype=np.int32)
    assert load("identity")("launch_forms", out, n).error == 0
    np.testing.assert_array_equal(out, np.arange(n) + 111)


@pytest.mark.parametrize(
    ("shape", "error"),
    [
        ((1, 1, 1, 1024, 1, 1, 0), 0),
        ((1, 1, 1, 1025, 1, 1, 0), INVALID_VALUE),
        ((1, 1, 1, 32, 33, 1, 0), INVALID_VALUE),
        ((1, 1, 1, 1, 1, 64, 0), 0),
        ((1, 1, 1, 1, 1, 65, 0), INVALID_VALUE),
        ((0, 1, 1, 32, 1, 1, 0), INVALID_VALUE),
        ((1, 1, 0, 32, 1, 1, 0), INVALID_VALUE),
        ((1, 1, 1, 0, 1, 1, 0), INVALID_VALUE),
        ((-1, 1, 1, 32, 1, 1, 0), INVALID_VALUE),
        ((1, 65535, 1, 1, 1, 1, 0), 0),
        ((1, 65536, 1, 1, 1, 1, 0), INVALID_VALUE),
        ((1, 1, 65536, 1, 1, 1, 0), INVALID_VALUE),
        ((1, 1, 1, 32, 1, 1, 49152), 0),
        ((1, 1, 1, 32, 1, 1, 49153), INVALID_VALUE),
        ((1, 1, 1, 32, 1, 1, -4), INVALID_VALUE),
    ],
)
def test_configurations_are_refused_as_cuda_refuses_them(load, shape, error):
    out = np.full(1024, -1, dtype=np.int32)
    assert load("identity")("configuration", out, *shape).error == error
    assert (out[0] == 0) == (error == 0), "a refused launch must not run the kernel"


@pytest.mark.parametrize(
    ("shape", "fix"),
    [
        ((0, 1, 1, 32, 1, 1, 0), "Round the number of blocks up"),
        ((1, 1, 1, 0, 1, 1, 0), "Launch at least one thread"),
        ((1, 1, 1, 1025, 1, 1, 0), "Launch more blocks of fewer threads"),
        ((1, 1, 1, 32, 33, 1, 0), "Launch more blocks of fewer threads"),
        ((1, 65536, 1, 1, 1, 1, 0), "Launch fewer blocks"),
        ((1, 1, 1, 32, 1, 1, 1 << 20), "Pass fewer bytes"),
    ],
)
def test_a_refused_configuration_says_how_to_correct_it(load, shape, fix):
    kernel = load("identity")
    outcome = kernel("configuration", np.zeros(1024, dtype=np.int32), *shape)
    report = Report.from_json(json.dumps(outcome.report), kernel.built.library, source=kernel.built.file)
    (finding,) = report.findings
    assert finding.kind == "refused" and findings.fix(finding).startswith(fix)
