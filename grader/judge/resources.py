"""What the real compiler makes of each kernel, where nvcc is found: registers, spills, shared memory, occupancy.

It is shown with *builds* and fails nothing. nvcc takes about a second, so it runs beside the cases, and only when asked
for. The block size that occupancy depends on is that of the launches which the simulator saw.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from grader.building.resource_usage import ResourceUsage, resource_usage
from grader.errors import GraderError
from grader.toolchain.compilers import find_nvcc
from grader.toolchain.occupancy import gpu_for
from grader.verdict import KernelResources

if TYPE_CHECKING:
    from grader.simulator.report import Report


class Resources:
    """The work in a thread; ``collect`` waits for it."""

    def __init__(self, file: Path, architecture: str) -> None:
        self.gpu = gpu_for(architecture)
        self.refused = ""
        """What nvcc says of a file that it does not compile, though the simulator runs it."""
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="resources")
        self._work: Future[list[ResourceUsage]] = self._pool.submit(self._compile, file)

    def _compile(self, file: Path) -> list[ResourceUsage]:
        if find_nvcc(required=False) is None:
            return []
        try:
            return resource_usage(file, self.gpu.arch)
        except GraderError as error:
            self.refused = f"nvcc does not compile this file: {error.message}"
            return []

    def collect(self, launches: Mapping[str, tuple[int, int]]) -> list[KernelResources]:
        """The resources of each kernel; ``launches`` has threads per block and dynamic shared bytes by kernel name."""
        found = self._work.result()
        self._pool.shutdown(wait=False)
        by_name = {plain_name(name): value for name, value in launches.items()}
        return [self._one(kernel, by_name.get(plain_name(kernel.name))) for kernel in found]

    def _one(self, kernel: ResourceUsage, launch: tuple[int, int] | None) -> KernelResources:
        result = KernelResources(
            kernel=kernel.name,
            architecture=kernel.arch,
            registers=kernel.registers,
            spill_bytes=kernel.spill_stores + kernel.spill_loads,
            static_shared_bytes=kernel.static_shared,
            gpu=self.gpu.name,
        )
        if launch is not None:
            result.threads, result.dynamic_shared_bytes = launch
            occupancy = kernel.occupancy(self.gpu, *launch)
            result.occupancy = occupancy.fraction
            result.limited_by = " and ".join(occupancy.limited_by)
        return result


def plain_name(kernel: str) -> str:
    """A kernel's name without namespaces and template arguments."""
    return kernel.partition("<")[0].rpartition("::")[2].strip()


def launches_of(reports: Sequence[Report | None]) -> dict[str, tuple[int, int]]:
    """Threads per block and dynamic shared bytes of each kernel: those of its largest launch."""
    launches: dict[str, tuple[int, int]] = {}
    for report in reports:
        for kernel in report.kernels if report is not None else []:
            threads, shared = math.prod(kernel.block), kernel.dynamic_shared_bytes
            if (threads, shared) > launches.get(kernel.name, (0, 0)):
                launches[kernel.name] = (threads, shared)
    return launches
