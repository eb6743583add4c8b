"""Tests that no other library can interpose symbols between a kernel and the simulator, in any load order."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from grader.execution.build.build import compile_kernel
from grader.execution.build.cxx_library import FUNCTIONS
from grader.execution.jail import imports
from grader.frontend.toolchain.compilers import available_cxx, find_cxx
from grader.simulator import hooks, library
from tests.simulator.harness import KERNELS

ROOT = Path(__file__).parents[2]
# Names that the simulator may define. The last two are helper functions that compilers generate for indirect calls.
OURS = re.compile(r"_ZN3sim\w+|sim_\w+|__wrap_\w+|__x86_indirect_thunk_\w+|__llvm_external_retpoline_r11")
# Versions of symbols by which the system's C and C++ libraries are recognized.
SYSTEM = re.compile(r"(GLIBC|GLIBCXX|CXXABI|GCC)_(\d+(\.\d+)*)")
# Weak symbols that every shared library references.
WEAK = ("__gmon_start__", "_ITM_deregisterTMCloneTable", "_ITM_registerTMCloneTable", "__cxa_finalize")
COMPILERS = [pytest.param(compiler, id=compiler.family) for compiler in available_cxx()]
# A command that first loads the given libraries with global visibility, and then makes all calls that lessons make.
BESIDE = (sys.executable, "-m", "tests.simulator.beside_other_libraries")


def listed(path: Path, which: str) -> list[str]:
    """Return a library's dynamic symbols. ``which`` is an option of nm: "--defined-only" or "--undefined-only"."""
    done = subprocess.run(["nm", "-D", which, str(path)], capture_output=True, text=True, check=True)
    return [line.split()[-1] for line in done.stdout.splitlines()]


def kernel_files() -> list[Path]:
    """Return kernel files that import many symbols: runtime API, C++ library, tensor cores, structure copies."""
    names = ("runtime_api", "program", "cooperative_groups", "wmma", "structures_by_value", "math")
    return [*(KERNELS / f"{name}.cu" for name in names), ROOT / "solutions/day02_reductions/softmax.cu"]


@pytest.mark.parametrize("compiler", COMPILERS)
def test_exported_names_of_the_simulator_are_unique(compiler):
    names = listed(library.ensure_library(compiler), "--defined-only")
    assert {"sim_cudaGetLastError", "sim_printf", "__wrap___tsan_read4"} <= set(names)
    assert [name for name in names if not OURS.fullmatch(name)] == []


@pytest.mark.parametrize("compiler", COMPILERS)
def test_the_linker_knows_every_hook_of_the_simulator(compiler):
    names = listed(library.ensure_library(compiler), "--defined-only")
    assert {name for name in names if name.startswith("__wrap_")} == {
        hooks.wrapped(name) for name in (*hooks.INSERTED, *hooks.LIBRARY)
    }


@pytest.mark.parametrize("compiler", COMPILERS)
def test_kernels_import_only_the_simulator_and_system_libraries(compiler):
    for file in kernel_files():
        built = compile_kernel(file, compiler=compiler)
        provided = set(listed(built.libsim, "--defined-only"))
        for name in listed(built.library, "--undefined-only"):
            plain, _, version = name.partition("@")
            # At link time a stub replaces libstdc++. Symbols from it have no version, so they are listed in FUNCTIONS.
            system = SYSTEM.fullmatch(version.lstrip("@")) or plain in (*WEAK, *FUNCTIONS)
            assert plain in provided or system, f"{file.name}: {name}"
            assert not re.match(r"cu[A-Z]|cuda|__tsan|__ubsan|__sanitizer", plain), f"{file.name}: {name}"


@pytest.mark.parametrize("compiler", COMPILERS)
def test_an_older_libstdcxx_that_is_loaded_first_is_sufficient(compiler):
    """Check that libstdc++ of GCC 9 suffices: conda's Python and some wheels load one older than the compiler."""
    newest = {"GLIBCXX": (3, 4, 28), "CXXABI": (1, 3, 12), "GCC": (9, 0, 0)}
    plan = library.plan_library(compiler)
    libraries = [library.ensure_library(compiler)]
    libraries += [compile_kernel(file, compiler=compiler).library for file in kernel_files()]
    assert plan.file_name == libraries[0].name
    for path in libraries:
        for name in listed(path, "--undefined-only"):
            version = SYSTEM.search(name)
            if version and version[1] in newest:
                assert tuple(map(int, version[2].split("."))) <= newest[version[1]], f"{path.name}: {name}"


def test_a_kernel_may_not_define_hooks(tmp_path):
    """Check names of hooks: those that the compiler calls, and those with which the linker replaces them."""
    for name in ("__tsan_read4", "__wrap___tsan_read4", "__sanitizer_cov_trace_pc", "sim_cudaGetLastError"):
        source = tmp_path / f"{name}.cpp"
        source.write_text(f'extern "C" __attribute__((visibility("hidden"), used)) void {name}(void*) {{}}\n')
        made = source.with_suffix(".so")
        command = (*find_cxx().command, "-shared", "-fPIC", str(source), "-o", str(made))
        subprocess.run(command, check=True)
        assert imports.refused(made, library.ensure_library()) == [name]


# -- processes with other libraries ------------ ----------------------------------------------------------------------


def run_beside(*words: str | Path, **environment: str) -> subprocess.CompletedProcess:
    env = {**os.environ, **environment}
    return subprocess.run([*BESIDE, *map(str, words)], capture_output=True, text=True, cwd=ROOT, env=env, timeout=1000)


def decoy(folder: Path) -> Path:
    """Return a library that defines every symbol that a kernel could import, and ends the process if one is called."""
    provided = listed(library.ensure_library(), "--defined-only")
    names = {name.removeprefix("sim_") for name in provided if name.startswith("sim_cuda")}
    names |= {"cudaMalloc", "cudaLaunchKernel", "cudaMallocManaged", "__cudaRegisterFunction", *hooks.INSERTED}
    names |= {f"__wrap_{name}" for name in ("memcpy", "memmove", "memset")}
    assert {"cudaGetLastError", "cudaMemcpy", "cudaStreamCreate", "__tsan_read4"} <= names
    lines = ["#include <stdio.h>", "#include <stdlib.h>"]
    lines += [
        f'extern "C" void {name}() {{ fputs("{name} of the decoy\\n", stderr); abort(); }}' for name in sorted(names)
    ]
    source = folder / "decoy.cpp"
    source.write_text("\n".join(lines))
    made = folder / "libdecoy.so"
    subprocess.run([*find_cxx().command, "-shared", "-fPIC", str(source), "-o", str(made)], check=True)
    return made


@pytest.fixture(scope="module")
def cuda_runtime() -> Path:
    """Return NVIDIA's libcudart from the package nvidia-cuda-runtime."""
    spec = importlib.util.find_spec("nvidia")
    folders = [Path(folder) for folder in spec.submodule_search_locations or []] if spec else []
    found = sorted(path for folder in folders for path in folder.glob("**/libcudart.so*"))
    assert found, "the package nvidia-cuda-runtime is not installed: run make"
    return found[0]


def test_nvidias_runtime_is_loaded_first(cuda_runtime):
    """Check the precondition of the next tests: a process can make NVIDIA's CUDA runtime globally visible."""
    program = (
        f"import ctypes; ctypes.CDLL({str(cuda_runtime)!r}, mode=ctypes.RTLD_GLOBAL);"
        "version = ctypes.c_int(); ctypes.CDLL(None).cudaRuntimeGetVersion(ctypes.byref(version)); print(version.value)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert int(done.stdout) >= 13000, done


def test_the_simulator_beside_nvidias_runtime(cuda_runtime):
    done = run_beside(cuda_runtime)
    assert (done.returncode, done.stdout.splitlines()[-1:]) == (0, ["the simulator answered all calls"]), done


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("how", ["opened", "preloaded"])
def test_beside_a_library_that_defines_every_symbol(tmp_path, compiler, how):
    made = decoy(tmp_path)
    environment = {"GRADER_CXX": " ".join(compiler.command)}
    if how == "preloaded":
        environment["LD_PRELOAD"] = str(made)
    # PyTorch built for CUDA would call the decoy when it is imported.
    done = run_beside(*([made] if how == "opened" else []), "without:torch", **environment)
    assert (done.returncode, done.stdout.splitlines()[-1:]) == (0, ["the simulator answered all calls"]), done


def test_the_decoy_ends_a_process_that_calls_it(tmp_path):
    program = f"import ctypes; ctypes.CDLL({str(decoy(tmp_path))!r}, mode=ctypes.RTLD_GLOBAL).cudaGetLastError()"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode < 0 and "cudaGetLastError of the decoy" in done.stderr


@pytest.mark.parametrize("module", ["cupy", "triton", "jax"])
def test_beside_other_packages(module):
    if importlib.util.find_spec(module) is None:
        pytest.skip(f"{module} is not installed; the course does not need it")
    done = run_beside(f"import:{module}")
    assert (done.returncode, done.stdout.splitlines()[-1:]) == (0, ["the simulator answered all calls"]), done


def test_a_library_opened_afterwards_changes_nothing(cuda_runtime):
    """Check lazy binding: the first call of a simulator function may follow the load of another library."""
    done = run_beside(f"after:{cuda_runtime}")
    assert (done.returncode, done.stdout.splitlines()[-1:]) == (0, ["the simulator answered all calls"]), done
