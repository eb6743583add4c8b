"""Occupancy: compared with known values, and with NVIDIA's calculator if the CUDA toolkit is installed."""

import itertools
import subprocess

import pytest

from grader.frontend.toolchain.compilers import cuda_home, find_cxx, find_nvcc
from grader.frontend.toolchain.gpus import DEFAULT_GPU, GPUS, SOURCES, find_gpu, gpu_for, runs
from grader.frontend.toolchain.occupancy import occupancy
from grader.setup.errors import GraderError


def test_a_kernel_that_fills_the_gpu():
    found = occupancy(GPUS["H100"], 256, 32)
    assert (found.blocks, found.warps, found.fraction) == (8, 64, 1.0)
    assert "warps" in found.limited_by


def test_registers_limit():
    found = occupancy(GPUS["A100"], 256, 128)
    assert (found.blocks, found.fraction, found.limited_by) == (2, 0.25, ("registers",))


def test_shared_memory_limits_and_cuda_reserves_a_part_of_it():
    found = occupancy(GPUS["RTX 4090"], 128, 32, 4096, 45056)
    assert (found.blocks, found.limited_by) == (2, ("shared memory",))
    # Two blocks with exactly half of the memory each do not fit, because CUDA reserves a part of it.
    assert occupancy(GPUS["H100"], 128, 32, 0, 114 * 1024).blocks == 1


def test_a_block_that_does_not_fit():
    assert occupancy(GPUS["H100"], 1024, 128).blocks == 0
    assert occupancy(GPUS["H100"], 128, 32, 0, 228 * 1024).blocks == 0
    assert "no block fits on H100: registers" in str(occupancy(GPUS["H100"], 1024, 128))


def test_the_description_names_the_limit():
    text = str(occupancy(GPUS["H200"], 256, 96))
    assert text == "25% on H200 (2 blocks = 16 of 64 warps per SM, limited by registers)"


@pytest.mark.parametrize(
    ("name", "gpu"),
    [
        ("NVIDIA H200", "H200"),
        ("NVIDIA H100 80GB HBM3", "H100"),
        ("NVIDIA A100-SXM4-80GB", "A100"),
        ("a100", "A100"),
        ("Tesla T4", "T4"),
        ("NVIDIA GeForce RTX 3060 Laptop GPU", "RTX 3060 Laptop"),
        ("3060 laptop", "RTX 3060 Laptop"),
        ("NVIDIA GeForce RTX 4090", "RTX 4090"),
        ("rtx4090", "RTX 4090"),
        ("RTX 5090", "RTX 5090"),
        ("5090", "RTX 5090"),
        ("sm_120", "RTX 5090"),
        ("NVIDIA B200", "B200"),
        ("sm_100", "B200"),
    ],
)
def test_names(name, gpu):
    assert find_gpu(name).name == gpu


@pytest.mark.parametrize(
    ("gpu", "needed", "does"),
    [
        ("sm_80", "sm_80", True),
        ("sm_75", "sm_80", False),
        ("sm_100", "sm_90", True),
        ("sm_90", "sm_100", False),
        ("sm_90", "sm_90a", True),
        ("sm_100", "sm_90a", False),
    ],
)
def test_which_gpu_runs_an_architecture(gpu, needed, does):
    assert runs(gpu, needed) is does


def test_the_gpu_that_is_shown_runs_the_exercise():
    assert gpu_for("sm_80") is gpu_for("sm_90a") is GPUS[DEFAULT_GPU]
    assert gpu_for("sm_100a").name == "B200" and gpu_for("sm_120").name == "RTX 5090"


def test_the_table_has_the_gpus_of_readers_with_sources():
    assert {"T4", "RTX 3060 Laptop", "RTX 4090", "RTX 5090", "A100", "H100", "H200", "B200"} <= set(GPUS)
    assert set(SOURCES) == set(GPUS) and all(SOURCES.values())
    for gpu in GPUS.values():  # f32 operations per second of the data sheet: at a clock within 25 % of the highest
        assert 0.75 < gpu.f32 / (2 * gpu.per_cycle.f32 * gpu.sms * gpu.clock) < 1.01, gpu.name
        assert 0.75 < gpu.f16_tensor / (gpu.tensor("f16") * gpu.sms * gpu.clock) < 1.01, gpu.name


def test_an_unknown_gpu():
    for name in ("", "RTX", "laptop", "60"):
        with pytest.raises(GraderError, match="unknown GPU"):
            find_gpu(name)
    with pytest.raises(GraderError, match="'Voodoo 2'") as caught:
        find_gpu("Voodoo 2")
    assert "H200" in caught.value.hint


PROGRAM = """
#include <cstdio>
#include "cuda_occupancy.h"
int main() {
    int major, minor, block, registers; long per_sm, per_block, sms, reserved; int threads_sm; long fixed, dynamic;
    while (scanf("%d %d %ld %d %ld %ld %ld %d %d %ld %ld", &major, &minor, &sms, &threads_sm, &per_sm, &per_block, &reserved, &block,
                 &registers, &fixed, &dynamic) == 11) {
        cudaOccDeviceProp p = {};
        p.computeMajor = major; p.computeMinor = minor; p.maxThreadsPerBlock = 1024;
        p.maxThreadsPerMultiprocessor = threads_sm; p.regsPerBlock = 65536; p.regsPerMultiprocessor = 65536;
        p.warpSize = 32; p.sharedMemPerBlock = 49152; p.sharedMemPerMultiprocessor = per_sm; p.numSms = sms;
        p.sharedMemPerBlockOptin = per_block; p.reservedSharedMemPerBlock = reserved;
        cudaOccFuncAttributes a; a.maxThreadsPerBlock = 1024; a.numRegs = registers; a.sharedSizeBytes = fixed;
        a.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN; a.maxDynamicSharedSizeBytes = dynamic; a.numBlockBarriers = 1;
        cudaOccDeviceState s; s.carveoutConfig = SHAREDMEM_CARVEOUT_MAX_SHARED;
        cudaOccResult r; cudaOccMaxActiveBlocksPerMultiprocessor(&r, &p, &a, &s, block, dynamic);
        printf("%d\\n", r.activeBlocksPerMultiprocessor);
    }
}
"""  # noqa: E501


def test_nvidias_own_calculation_agrees(tmp_path):
    nvcc = find_nvcc(required=False)
    header = next(iter(cuda_home(nvcc).glob("include/cuda_occupancy.h")), None) if nvcc else None
    if header is None:
        pytest.skip("the CUDA toolkit is not installed")
    (tmp_path / "o.cpp").write_text(PROGRAM)
    command = [*find_cxx().command, f"-I{header.parent}", "-w", "o.cpp", "-o", "o"]
    subprocess.run(command, cwd=tmp_path, check=True)
    cases, lines = [], []
    shared = [(0, 0), (1000, 0), (4096, 20000), (0, 49152), (128, 98000), (0, 101376), (2048, 110000), (0, 232448)]
    for gpu in GPUS.values():
        number = gpu.arch.removeprefix("sm_")
        for block, registers, (fixed, dynamic) in itertools.product(
            (1, 32, 96, 128, 160, 256, 480, 512, 768, 1024), (1, 16, 31, 32, 40, 64, 72, 100, 128, 168, 255), shared
        ):
            cases.append((gpu, block, registers, fixed, dynamic))
            limits = (
                f"{gpu.sms} {gpu.limits.warps * 32} {gpu.limits.shared_per_sm} {gpu.limits.shared_per_block} "
                f"{gpu.limits.reserved_shared}"
            )
            lines.append(f"{number[:-1]} {number[-1]} {limits} {block} {registers} {fixed} {dynamic}")
    done = subprocess.run(["./o"], cwd=tmp_path, input="\n".join(lines), capture_output=True, text=True, check=True)
    theirs = [int(line) for line in done.stdout.split()]
    assert len(theirs) == len(cases)
    wrong = [
        (case[0].name, *case[1:], occupancy(*case).blocks, expected)
        for case, expected in zip(cases, theirs)
        if occupancy(*case).blocks != expected
    ]
    assert wrong == []
