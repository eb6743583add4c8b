"""Tests of the reverse order of blocks and warps, which shows races that locks and flags hide in forward order."""

from __future__ import annotations

import numpy as np
import pytest

IN_REVERSE = (
    "writes_after_unlock",
    "reads_before_lock",
    "warp_writes_after_unlock",
    "last_index_adds",
    "tests_flag_once",
    "tests_volatile_once",
    "tests_acquire_once",
    "waits_for_one_of_two",
    "warp_tests_flag_once",
)
IN_FORWARD = ("first_writes_after_unlock",)


@pytest.mark.parametrize("launcher", [*IN_REVERSE, *IN_FORWARD])
@pytest.mark.parametrize("clean", [False, True])
def test_a_race_that_occurs_in_one_order_only(load, launcher, clean):
    kernel = load("schedules", checks=True)
    for schedule in ("forward", "reverse"):
        kernel.configure(schedule=schedule)
        data, sync, out = (np.zeros(8, dtype=np.int32) for _ in range(3))
        outcome = kernel(launcher, data, sync, out, clean)
        races = [finding["kind"] for finding in outcome.report["findings"]]
        occurs = not clean and (schedule == "reverse") == (launcher in IN_REVERSE)
        expected = "within_block" if launcher.startswith("warp") else "between_blocks"
        assert (outcome.error, set(races)) == (0, {expected} if occurs else set()), schedule
