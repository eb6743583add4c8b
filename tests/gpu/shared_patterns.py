"""Wavefronts of single shared-memory accesses with random addresses and inactive lanes, on the simulator and by ncu.

    python -m tests.gpu.shared_patterns                prints the number of equal patterns in each family
    python -m tests.gpu.shared_patterns --out FILE     also writes the record
    python -m tests.gpu.shared_patterns --again FILE   runs the record's patterns on the simulator; needs no GPU

A pattern is one warp's access of 4, 8 or 16 bytes for each lane: 32 slot numbers in units of the access, or -1 for an
inactive lane. Each pattern is a separate launch (tests/simulator/kernels/shared_patterns.cu). The patterns are the same
in every run.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import numpy as np

from grader.course import course_root
from grader.judge.timing.sources import write_record
from tests.gpu.compare_counters import versions
from tests.simulator.harness import KERNELS, SimulatedKernel

RECORD = Path(__file__).resolve().parents[2] / "lessons/can_i_believe_this/shared_patterns_h200.json"
KERNEL = KERNELS / "shared_patterns.cu"
SHARED_BYTES = 16384  # equal to kBytes in shared_patterns.cu
SEED = 1
COUNT = 16  # patterns in each family
METRICS = [f"l1tex__data_pipe_lsu_wavefronts_mem_shared_op_{kind}.sum" for kind in ("ld", "st")]


class Group(NamedTuple):
    """The patterns of one family for one kind of access."""

    bytes: int
    write: bool
    family: str
    patterns: list[list[int]]


class Draw:
    """A generator of random patterns. It uses only Random.random(), which is the same in every Python version."""

    def __init__(self, seed: str, slots: int) -> None:
        self._random = Random(seed)
        self.slots = slots

    def below(self, n: int) -> int:
        return int(self._random.random() * n)

    def any(self, n: int = 32) -> list[int]:
        """Draw slots anywhere in the array."""
        return [self.below(self.slots) for _ in range(n)]

    def near(self, n: int = 32, among: int = 64) -> list[int]:
        """Draw slots from a range of ``among`` neighboring slots. Some are equal."""
        start = self.below(self.slots - among)
        return [start + self.below(among) for _ in range(n)]

    def some(self, slots: list[int], keep: float | None = None) -> list[int]:
        """Deactivate some lanes, but not all."""
        share = self._random.random() if keep is None else keep
        kept = [slot if self._random.random() < share else -1 for slot in slots]
        lane = self.below(32)
        return kept if max(kept) >= 0 else [slot if i == lane else -1 for i, slot in enumerate(slots)]

    def only(self, lanes: int, slots: list[int]) -> list[int]:
        """Keep ``lanes`` random lanes active and deactivate the others."""
        chosen: set[int] = set()
        while len(chosen) < lanes:
            chosen.add(self.below(32))
        return [slot if i in chosen else -1 for i, slot in enumerate(slots)]

    def shuffled(self, slots: list[int]) -> list[int]:
        order = list(slots)
        for i in range(len(order) - 1, 0, -1):
            j = self.below(i + 1)
            order[i], order[j] = order[j], order[i]
        return order

    def few(self) -> list[int]:
        """Draw the lanes' slots from two to nine random slots."""
        among = self.any(2 + self.below(8))
        return [among[self.below(len(among))] for _ in range(32)]

    def blocks(self) -> list[int]:
        """Draw runs of lanes that access the same slot."""
        length = 1 << self.below(6)
        among = self.any(32)
        return [among[lane // length] for lane in range(32)]

    def alike(self, distance: int, apart: int = 0) -> list[int]:
        """Draw slots such that lanes i and i ^ distance have the same slot, except for up to ``apart`` lanes."""
        slots = self.any()
        slots = [slots[lane & ~distance] for lane in range(32)]
        for _ in range(apart):
            slots[self.below(32)] = self.below(self.slots)
        return slots

    def stride(self) -> list[int]:
        step = self.below(33)
        start = self.below(self.slots - 31 * step)
        return [start + step * lane for lane in range(32)]

    def one_bank(self) -> list[int]:
        """Draw slots that are all in the same banks."""
        turn = 128 * self.slots // SHARED_BYTES  # slots in 32 banks
        return [(slot // turn) * turn + 1 for slot in self.any()]


FAMILIES: dict[str, Callable[[Draw], list[int]]] = {
    "anywhere": lambda d: d.any(),
    "anywhere, some lanes": lambda d: d.some(d.any()),
    "near": lambda d: d.near(),
    "near, some lanes": lambda d: d.some(d.near()),
    "side by side, some lanes": lambda d: d.some(list(range(32))),
    "shuffled": lambda d: d.shuffled(list(range(32))),
    "shuffled, some lanes": lambda d: d.some(d.shuffled(list(range(32)))),
    "few slots": lambda d: d.few(),
    "few slots, some lanes": lambda d: d.some(d.few()),
    "runs": lambda d: d.blocks(),
    "runs, some lanes": lambda d: d.some(d.blocks()),
    "neighbors alike": lambda d: d.alike(1 << d.below(5)),
    "neighbors alike, some lanes": lambda d: d.some(d.alike(1 << d.below(5))),
    "neighbors alike but for some": lambda d: d.alike(1 << d.below(2), 1 + d.below(3)),
    "one lane": lambda d: d.only(1, d.any()),
    "two lanes, other banks": lambda d: d.only(2, d.shuffled(list(range(32)))),
    "two lanes, the same": lambda d: d.only(2, [d.below(d.slots)] * 32),
    "two lanes, one bank": lambda d: d.only(2, d.one_bank()),
    "three lanes": lambda d: d.only(3, d.near(32, 16)),
    "five lanes": lambda d: d.only(5, d.near(32, 16)),
    "one bank, some lanes": lambda d: d.some(d.one_bank()),
    "strides": lambda d: d.stride(),
    "strides, some lanes": lambda d: d.some(d.stride()),
}


def groups(count: int = COUNT) -> Iterator[Group]:
    """Yield all patterns, in the order of the launches."""
    for size in (4, 8, 16):
        for write in (False, True):
            for family, draw in FAMILIES.items():
                # The seed contains the family's name, which was spelled so when the record was made.
                spelled = family.replace("neighbors", "neighbours")
                random = Draw(f"{SEED} {size} {write} {spelled}", SHARED_BYTES // size)
                yield Group(size, write, family, [draw(random) for _ in range(count if size > 4 else count // 4)])


def simulated(group: Group) -> list[int]:
    """Return the simulator's wavefronts of each pattern."""
    kernel = SimulatedKernel(KERNEL, checks=True)
    found = []
    for pattern in group.patterns:
        slots, out = np.array(pattern, dtype=np.int32), np.zeros(SHARED_BYTES // 4, dtype=np.int32)
        kernels = kernel("run", slots, out, 1, group.bytes, group.write).report["kernels"]
        sites = [site for each in kernels for site in each["sites"] if site["space"] == "shared"]
        found.append(sum(site["wavefronts"] for site in sites if site["access"] == access_of(group)))
    return found


def access_of(group: Group) -> str:
    return "write" if group.write else "read"


def target(count: int) -> None:
    """Launch each pattern once, for ncu to profile."""
    import torch

    from grader import load_kernel

    kernel = load_kernel(KERNEL, device="cuda")
    for group in groups(count):
        slots = torch.tensor(group.patterns, dtype=torch.int32, device="cuda")
        out = torch.zeros(SHARED_BYTES // 4, dtype=torch.int32, device="cuda")
        kernel.run(slots, out, len(group.patterns), group.bytes, group.write)
    torch.cuda.synchronize()


def measured(count: int) -> list[list[int]]:
    """Return ncu's wavefronts of each pattern, group by group."""
    command = ["ncu", "--target-processes", "application-only", "--clock-control", "none", "--cache-control", "none"]
    command += ["--kernel-name", "regex:_slots", "--csv", "--page", "raw", "--print-units", "base"]
    command += ["--metrics", ",".join(METRICS)]
    command += [sys.executable, "-m", "tests.gpu.shared_patterns", "--target", str(count)]
    done = subprocess.run(command, capture_output=True, text=True)
    start = done.stdout.find('"ID"')
    if start < 0:
        raise SystemExit(f"ncu gave no table:\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}")
    rows = iter(list(csv.DictReader(io.StringIO(done.stdout[start:])))[1:])  # the first row contains the units
    found = []
    for group in groups(count):
        metric = METRICS[group.write]
        found.append([round(float(next(rows)[metric].replace(",", ""))) for _ in group.patterns])
    if next(rows, None) is not None:
        raise SystemExit("ncu saw more launches than there are patterns.")
    return found


def row_of(group: Group, ncu: list[int]) -> dict[str, Any]:
    """Return one group of the record."""
    row = {"bytes": group.bytes, "access": access_of(group), "family": group.family}
    return {**row, "simulator": simulated(group), "ncu": ncu}


def show(rows: list[dict[str, Any]]) -> None:
    """Print each group's number of patterns with equal counts, and the sums of the simulator's and ncu's counts."""
    for row in rows:
        equal = sum(a == b for a, b in zip(row["simulator"], row["ncu"], strict=True))
        sums = f"{sum(row['simulator']):5} {sum(row['ncu']):5}"
        print(f"{row['bytes']:2} B {row['access']:5}  {row['family']:30} {equal:3} of {len(row['ncu'])}  {sums}")


def main() -> int:
    """Measure on both sides, or update the simulator's side; print and write the record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--again", type=Path)
    parser.add_argument("--count", type=int, default=COUNT, help="patterns in each family")
    parser.add_argument("--target", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.target:
        target(arguments.target)
        return 0
    path, count = arguments.again or arguments.out, arguments.count
    if arguments.again:
        content = json.loads(path.read_text())
        ncu, count = [row["ncu"] for row in content["rows"]], content["count"]
    else:
        ncu = measured(count)
        content = {**versions(), "command": "python -m tests.gpu.shared_patterns --out FILE.json", "count": count}
    content["rows"] = [row_of(group, of_ncu) for group, of_ncu in zip(groups(count), ncu, strict=True)]
    show(content["rows"])
    if path:
        write_record(path, content, course_root())
    return 0


if __name__ == "__main__":
    sys.exit(main())
