"""A read out of bounds does not search the process's libraries, which would take most of a launch's time."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

KERNEL = """#include <cuda_runtime.h>
__global__ void beyond(const int* x, int* out, int n) {
    __shared__ int kept[32];
    kept[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    out[threadIdx.x] = kept[32 + threadIdx.x] + x[n + threadIdx.x];
}
extern "C" void go(const int* x, int* out, int n, cudaStream_t stream) { beyond<<<1, 32, 0, stream>>>(x, out, n); }
"""
COUNTER = """#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
typedef int (*Search)(int (*)(struct dl_phdr_info*, size_t, void*), void*);
int searches;
int dl_iterate_phdr(int (*visit)(struct dl_phdr_info*, size_t, void*), void* data) {
    ++searches;
    return ((Search)dlsym(RTLD_NEXT, "dl_iterate_phdr"))(visit, data);
}
"""
PROGRAM = """
import ctypes, sys
from pathlib import Path
import numpy as np
from tests.simulator.harness import SimulatedKernel

kernel = SimulatedKernel(Path(sys.argv[1]), checks=True)
x, out = np.zeros(32, dtype=np.int32), np.zeros(32, dtype=np.int32)
searches = ctypes.c_int.in_dll(ctypes.CDLL(sys.argv[2]), "searches")
before = searches.value
found = kernel("go", x, out, 32).report["findings"]
print(searches.value - before, sum(one["count"] for one in found if one["kind"] == "out_of_bounds"))
"""


@pytest.mark.skipif(not sys.platform.startswith("linux") or not shutil.which("gcc"), reason="needs LD_PRELOAD and gcc")
def test_no_library_is_searched_for_memory_of_the_device(tmp_path: Path) -> None:
    (tmp_path / "beyond.cu").write_text(KERNEL)
    (tmp_path / "counter.c").write_text(COUNTER)
    counter = tmp_path / "counter.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", counter, tmp_path / "counter.c", "-ldl"], check=True)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, tmp_path / "beyond.cu", counter],
        env={**os.environ, "LD_PRELOAD": str(counter)},
        capture_output=True,
        text=True,
        check=True,
    )
    searches, findings = map(int, done.stdout.split())
    assert findings == 64, done.stdout
    assert searches < 32, "one for each access out of bounds would be 64"
