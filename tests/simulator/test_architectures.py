"""Tests that the simulator's table of architectures agrees with the grader's table of GPUs for occupancy."""

from __future__ import annotations

import re

import pytest

from grader.frontend.ptx_instructions import first_architecture, simulated_architecture
from grader.frontend.toolchain.gpus import GPUS
from grader.simulator.library import INCLUDE_DIR

ROWS = {
    int(sm): tuple(map(int, row.split(",")))
    for sm, row in re.findall(
        r"^    \{(\d+), ([\d, ]+)\},", (INCLUDE_DIR / "sim/architectures.h").read_text(), re.MULTILINE
    )
}


@pytest.mark.parametrize("gpu", [gpu for gpu in GPUS.values() if gpu.arch != "sm_75"], ids=lambda gpu: gpu.name)
def test_gpus_match_their_architecture(gpu):
    sm = gpu.limits
    threads, blocks, registers, multiprocessor_shared, block_shared, banks, clusters = ROWS[
        int(gpu.arch.removeprefix("sm_"))
    ]
    assert (threads, blocks, registers, banks) == (32 * sm.warps, sm.blocks, sm.registers, 32)
    assert (multiprocessor_shared * 1024, block_shared * 1024) == (sm.shared_per_sm, sm.shared_per_block)
    assert (clusters > 0) == (int(gpu.arch.removeprefix("sm_")) >= 90)


def test_the_simulated_device_has_a_row():
    assert simulated_architecture() in ROWS


@pytest.mark.parametrize(
    ("opcode", "first"),
    [
        ("cp.async.cg.shared.global", 80),
        ("cp.async.bulk.commit_group", 90),
        ("mbarrier.arrive.shared.b64", 80),
        ("mbarrier.arrive.expect_tx.shared::cta.b64", 90),
        ("mbarrier.test_wait.parity.shared.b64", 80),
        ("fence.acq_rel.cluster", 90),
        ("barrier.cluster.arrive.release.aligned", 90),
        ("mapa.shared::cluster.u32", 90),
        ("st.async.shared::cluster.mbarrier::complete_tx::bytes.b32", 90),
        ("ld.shared::cluster.f32", 90),
        ("fence.acq_rel.gpu", 80),
        ("wgmma.fence.sync.aligned", 90),
        ("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32", 100),
    ],
)
def test_the_first_architecture_of_an_instruction(opcode, first):
    assert first_architecture(opcode) == first
