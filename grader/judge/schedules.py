"""Chooses the runs that the stages *correct* and *safe* repeat with the blocks and warps in reverse order.

The order of two accesses does not depend on the schedule of a run, unless threads communicate through atomic or
volatile accesses: then the schedule decides which thread takes a lock or a ticket first, and which value a flag has.
So a kernel with such accesses runs a second time, with the same inputs and the opposite schedule. Other kernels do not.
The runs of the stage *efficient* are repeated as well: a kernel can recognize them by their sizes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from grader.judge.cases import Run, repeated

if TYPE_CHECKING:
    from grader.simulator.line_counters import KernelCounters

MOST_OF_A_KERNEL = 3
"""The maximum number of runs that are repeated for a kernel."""
FRACTION = 0.25
"""The repeated runs do at most this fraction of the work of all runs, unless a kernel would then have none."""


def in_reverse(runs: Sequence[Run]) -> list[Run]:
    """Return the runs to execute in reverse order, if a kernel in them has threads that communicate.

    These are the smallest ones of each such kernel, and those whose counters are graded. A run with findings needs no
    second one.
    """
    chosen: dict[int, Run] = {}
    work = {id(run): _work(run) for run in runs}
    left = FRACTION * sum(work.values())
    found: dict[str, list[tuple[bool, int, Run]]] = {}
    for run in runs:
        for kernel in run.simulated.kernels if run.simulated and not run.result.findings else ():
            if kernel.communicates and kernel.threads > kernel.launches:
                one_block = kernel.blocks == kernel.launches
                found.setdefault(kernel.name, []).append((one_block, work[id(run)], run))
                if run.counted and not one_block:
                    chosen[id(run)] = run
    for candidates in found.values():
        candidates.sort(key=lambda candidate: candidate[:2])  # runs with several blocks come first
        for number, (_, size, run) in enumerate(candidates[:MOST_OF_A_KERNEL]):
            if id(run) not in chosen and (number == 0 or size <= left):
                chosen[id(run)] = run
                left -= size
    return [repeated(run, "reverse") for run in runs if id(run) in chosen]


def _work(run: Run) -> int:
    """Return the number of threads and accesses of a run, which its time on the simulator depends on."""
    kernels: Sequence[KernelCounters] = run.simulated.kernels if run.simulated else ()
    return sum(kernel.threads + sum(line.accesses for line in kernel.lines) for kernel in kernels)
