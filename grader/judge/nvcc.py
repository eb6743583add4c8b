"""Compiles a kernel file with nvcc, if it is installed. Its errors and resource usage are part of the verdict.

A kernel that passes on the simulator should also build for a GPU. nvcc takes one to four seconds with ``-cubin``, which
compiles only device code, including ptxas. (A whole build takes 1.5x as long and finds no other errors.) nvcc therefore
starts at once and runs in parallel with the simulator's compiler and the cases; the check waits for it at the end. Its
result is cached. It is not needed if the simulator's compiler rejects the file. The same run of nvcc reports registers,
spills and the stack frame of each kernel. The occupancy is computed for the block size of the launches on the
simulator.

nvcc is optional. The stage's summary says that the file was not checked with nvcc if nvcc is not installed, if it was
stopped, or if ``GRADER_CHECK_NVCC=off`` is set.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from grader.execution.build.diagnostics import CompileError
from grader.execution.build.resource_usage import resource_usage
from grader.frontend.toolchain.compilers import Compiler, find_nvcc
from grader.frontend.toolchain.gpus import Gpu, compiled_architecture, gpu_for
from grader.frontend.toolchain.occupancy import Occupancy, occupancy
from grader.frontend.toolchain.process import RunCommand
from grader.setup.errors import BuildError, GraderError
from grader.verdict import KernelResources

if TYPE_CHECKING:
    from grader.simulator.report import Report

SETTING = "GRADER_CHECK_NVCC"
_TROUBLE = re.compile(
    r"nvcc was stopped.*|unsupported (?:GNU|clang) version|cannot open source file .*|No such file or directory.*"
)
"""Errors that are caused by this machine, not by the file.

A missing header is among them, because the simulator's compiler has found every header that the file includes.
"""


@dataclass(frozen=True)
class Answer:
    """nvcc's result for a file."""

    gpu: Gpu
    compiler: Compiler | None = None
    """The nvcc that checked the file; None if the file was not checked."""
    why_not: str = ""
    """The reason why the file was not checked."""
    error: CompileError | None = None
    """nvcc's error, if it rejected the file."""
    usage: list[KernelResources] = field(default_factory=list)
    source: str = ""

    @property
    def summary(self) -> str:
        """The part of the stage's summary that is about nvcc."""
        if self.compiler is None:
            return f"not checked with nvcc: {self.why_not}"
        return f"also compiles with {self.compiler} for {compiled_architecture(self.gpu.arch)}"

    def resources(self, launches: Mapping[str, tuple[int, int]], on: Gpu | None = None) -> list[KernelResources]:
        """Return the resources of each kernel.

        ``launches`` has the threads per block and the dynamic shared memory in bytes, by the launched kernel's name.
        ``on`` is the GPU for the occupancy, if it is not the one for which nvcc compiled the file.
        """
        by_name: dict[str, tuple[int, int]] = {}
        kernels = {plain_name(kernel.kernel) for kernel in self.usage}
        for launched, value in launches.items():
            for name in _kernels_of(plain_name(launched), kernels, self.source):
                by_name[name] = max(value, by_name.get(name, (0, 0)))
        return [_resources(kernel, on or self.gpu, by_name.get(plain_name(kernel.kernel))) for kernel in self.usage]

    def refused_launch(self, launches: Mapping[str, tuple[int, int]]) -> BuildError | None:
        """Return an error if a launch needs more registers than an SM has, so that a GPU refuses it.

        ``launches`` is described in ``resources``. If several kernels have the launched name, all of them must need
        more.
        """
        names = {plain_name(kernel.kernel) for kernel in self.usage}
        for launched, (threads, _) in launches.items():
            chosen = _kernels_of(plain_name(launched), names, self.source)
            usage = [kernel for kernel in self.usage if plain_name(kernel.kernel) in chosen]
            if usage and all(_occupancy(kernel, self.gpu, threads).limits["registers"] == 0 for kernel in usage):
                registers = min(kernel.registers for kernel in usage)
                return BuildError(
                    f"{plain_name(launched)} uses {registers} registers per thread, as {self.compiler} compiles it. An "
                    f"SM does not have enough registers for a block of {threads} threads: a GPU refuses the launch.",
                    f"Launch smaller blocks, or declare the kernel with __launch_bounds__({threads}), so that nvcc "
                    "uses fewer registers.",
                )
        return None


def ask(file: Path, architecture: str, run: RunCommand) -> Answer:
    """Compile a file for the default GPU of reports, or for a GPU with the required architecture."""
    gpu = gpu_for(architecture)
    if os.environ.get(SETTING, "").strip().lower() in ("off", "0", "no"):
        return Answer(gpu, why_not=f"{SETTING} is off")
    try:
        compiler = find_nvcc(required=False)
        if compiler is None:
            return Answer(gpu, why_not="nvcc was not found")
        usage = resource_usage(file, gpu.arch, run=run)
        return Answer(gpu, compiler, usage=usage, source=file.read_text(encoding="utf-8", errors="replace"))
    except CompileError as error:
        if trouble := _TROUBLE.search(error.message):
            return Answer(gpu, why_not=trouble[0])
        if not error.diagnostics:
            return Answer(gpu, why_not=f"it failed ({error.message.splitlines()[-1]})")
        return Answer(gpu, compiler, error=error)
    except GraderError as error:
        return Answer(gpu, why_not=error.message)


def _occupancy(kernel: KernelResources, gpu: Gpu, threads: int, dynamic_shared: int = 0) -> Occupancy:
    return occupancy(gpu, threads, kernel.registers, kernel.static_shared_bytes, dynamic_shared)


def _resources(kernel: KernelResources, gpu: Gpu, launch: tuple[int, int] | None) -> KernelResources:
    """Return a kernel's resources with its occupancy on a GPU, if it was launched."""
    if launch is None:
        return replace(kernel, gpu=gpu.name)
    found = _occupancy(kernel, gpu, *launch)
    return replace(
        kernel,
        gpu=gpu.name,
        threads=launch[0],
        dynamic_shared_bytes=launch[1],
        occupancy=found.fraction,
        limited_by=" and ".join(found.limited_by),
    )


def _kernels_of(launched: str, kernels: Set[str], source: str) -> Set[str]:
    """Return the names of the kernels that a launch may start.

    ``launched`` is the name in the launch: that of a kernel, or of a function pointer, which the source text sets to
    one of several kernels.
    """
    if launched in kernels:
        return {launched}
    values = re.findall(rf"\b{re.escape(launched)}\b[^;={{}}]*(?<![=!<>])=(?!=)([^;]*);", source)
    return {name for value in values for name in re.findall(r"\w+", value)} & kernels


def plain_name(kernel: str) -> str:
    """Return a kernel's name without namespaces and template arguments."""
    return kernel.partition("<")[0].rpartition("::")[2].strip()


def launches_of(reports: Sequence[Report | None]) -> dict[str, tuple[int, int]]:
    """Return, for each kernel's largest launch, the threads per block and the dynamic shared memory in bytes."""
    launches: dict[str, tuple[int, int]] = {}
    for report in reports:
        for kernel in report.kernels if report is not None else []:
            threads, shared = math.prod(kernel.block), kernel.dynamic_shared_bytes
            if (threads, shared) > launches.get(kernel.name, (0, 0)):
                launches[kernel.name] = (threads, shared)
    return launches
