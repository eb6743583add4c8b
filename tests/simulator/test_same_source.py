"""Tests that nvcc, if it is installed, accepts the kernels of the simulator's tests.

Files are compiled together, as namespaces of one file, because nvcc needs longer for the headers than for the kernels.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from grader.frontend.toolchain.compilers import find_nvcc
from tests.simulator.corpus_kernels import CORPUS, CorpusFile, corpus_files, corpus_text
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
OF_THE_CORPUS = ["tensor_*", "*cluster*", "multicast_*", "remote_*", "distributed_*", "programmatic_*", "*wgmma*"]
OF_THE_CORPUS += ["stream*", "host_*", "graph_*"]


def compile_with_nvcc(file: Path, folder: Path, architecture: str) -> None:
    """Compile a file to machine code for the GPU.

    nvcc also parses the host code, but g++ does not compile it.
    """
    nvcc = find_nvcc(required=False)
    if nvcc is None:
        pytest.skip("no nvcc here")
    target = f"-gencode=arch=compute_{architecture},code=sm_{architecture}"
    command = [*nvcc.command, "-std=c++17", target, "-I", str(ROOT / "lessons"), "-cubin", str(file)]
    command += ["-o", str(folder / "x.cubin")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def together(files: list[Path]) -> str:
    """Return the files as one source text, in which nvcc's messages name the original file and line."""
    texts = {file: file.read_text() for file in files}
    includes = {line for text in texts.values() for line in text.splitlines() if line.startswith("#include")}
    bodies = [
        f'namespace file_{file.stem} {{\n#line 1 "{file.name}"\n{re.sub(r"(?m)^#include .*$", "", text)}\n}}\n'
        for file, text in texts.items()
    ]
    return "\n".join([*sorted(includes), *bodies])


def test_nvcc_accepts_the_kernels(tmp_path):
    file = tmp_path / "kernels.cu"
    file.write_text(together([KERNELS / f"{name}.cu" for name in NAMES]))
    compile_with_nvcc(file, tmp_path, "90")


def test_nvcc_accepts_the_corpus(tmp_path):
    """Compile the faulty and the correct variants, because the faults are errors at run time only."""
    found = {name: sorted(CORPUS.glob(f"*/{name}.cu")) for name in OF_THE_CORPUS}
    assert all(found.values()), found
    file = tmp_path / "corpus.cu"
    paths = sorted({path for paths in found.values() for path in paths})
    file.write_text(corpus_text([CorpusFile.read(path) for path in paths]))
    compile_with_nvcc(file, tmp_path, "90a")


def test_nvcc_accepts_the_corpus_for_tensor_memory(tmp_path):
    """Exclude one faulty kernel, which ptxas rejects."""
    file = tmp_path / "corpus.cu"
    files = {f.name.split("/")[1]: f for f in corpus_files(CORPUS / "tensor_memory")}
    refused = files.pop("pair_after_allocating_alone")
    file.write_text(corpus_text(list(files.values())))
    compile_with_nvcc(file, tmp_path, "100a")
    file.write_text(refused.text())
    with pytest.raises(AssertionError, match="cta_group"):
        compile_with_nvcc(file, tmp_path, "100a")
