"""The kernels of these tests are CUDA: nvcc, where there is one, accepts each of them as it is."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from grader.toolchain.compilers import find_nvcc
from tests.simulator.corpus_kernels import CORPUS, CorpusFile, corpus_text
from tests.simulator.harness import KERNELS

ROOT = Path(__file__).parents[2]
NAMES = [
    "barrier_copies",
    "cluster",
    "collective_mistakes",
    "cooperative_groups",
    "cub",
    "cuda_barrier",
    "expressions",
    "half",
    "math",
    "ptx",
    "streams",
    "tensor_copies",
    "tensor_ring",
    "vector_types",
    "wmma",
]


def compile_with_nvcc(file: Path, folder: Path, architecture: str) -> None:
    """To machine code for the GPU: nvcc reads the code of the host with it, and leaves out what g++ would make of that."""
    nvcc = find_nvcc(required=False)
    if nvcc is None:
        pytest.skip("no nvcc here")
    target = f"-gencode=arch=compute_{architecture},code=sm_{architecture}"
    command = [*nvcc.command, "-std=c++17", target, "-I", str(ROOT / "lessons"), "-cubin", str(file)]
    command += ["-o", str(folder / "x.cubin")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", NAMES)
def test_nvcc_accepts(name, tmp_path):
    compile_with_nvcc(KERNELS / f"{name}.cu", tmp_path, "90")


@pytest.mark.parametrize(
    "names", ["tensor_*", "*cluster*", "multicast_*", "remote_*", "distributed_*", "programmatic_*"]
)
def test_nvcc_accepts_what_the_corpus_has_of_hopper(names, tmp_path):
    """The faults too: they are faults of what a kernel does, not of how it is written."""
    file = tmp_path / "corpus.cu"
    file.write_text(corpus_text([CorpusFile.read(path) for path in sorted(CORPUS.glob(f"*/{names}.cu"))]))
    compile_with_nvcc(file, tmp_path, "90a")


def test_nvcc_accepts_what_the_corpus_has_of_tensor_memory(tmp_path):
    """But for one fault, which ptxas sees as well."""
    refused = CORPUS / "tensor_memory/pair_after_allocating_alone.cu"
    file = tmp_path / "corpus.cu"
    paths = sorted((CORPUS / "tensor_memory").glob("*.cu"))
    file.write_text(corpus_text([CorpusFile.read(path) for path in paths if path != refused]))
    compile_with_nvcc(file, tmp_path, "100a")
    with pytest.raises(AssertionError, match="cta_group"):
        compile_with_nvcc(refused, tmp_path, "100a")
