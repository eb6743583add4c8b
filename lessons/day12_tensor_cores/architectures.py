"""How nvcc is told which GPUs a kernel is for: one row for each architecture that this day speaks of.

A test gives every flag to nvcc, where there is one: tests/notebooks/test_architectures.py.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Architecture:
    """One architecture: its name in nvcc, GPUs that have it, and what its tensor cores are asked with."""

    name: str
    gpus: str
    tensor_cores: str

    @property
    def number(self) -> str:
        """90a of sm_90a."""
        return self.name.removeprefix("sm_")

    @property
    def specific(self) -> bool:
        """Whether its code runs on this architecture alone, and on none that comes later."""
        return self.name.endswith("a")

    @property
    def flag(self) -> str:
        """What nvcc gets for machine code of this architecture."""
        return f"-gencode=arch=compute_{self.number},code=sm_{self.number}"

    @property
    def flag_with_ptx(self) -> str:
        """The same, and PTX beside it, from which the driver of a later GPU makes machine code when it starts."""
        return f"-gencode=arch=compute_{self.number},code=[sm_{self.number},compute_{self.number}]"


ARCHITECTURES = [
    Architecture("sm_80", "A100", "mma.sync"),
    Architecture("sm_86", "RTX 30, A10, A40", "mma.sync"),
    Architecture("sm_89", "RTX 40, L4, L40S", "mma.sync, and f8"),
    Architecture("sm_90a", "H100, H200", "wgmma, and mma.sync"),
    Architecture("sm_100a", "B200, GB200", "tcgen05, and mma.sync"),
    Architecture("sm_120", "RTX 50, RTX PRO Blackwell", "mma.sync, and f4, f6, f8"),
]


def everywhere() -> list[str]:
    """Flags for one file that runs on all of them as fast as its code allows, and by PTX on what comes after them."""
    newest = ARCHITECTURES[-1]
    return [architecture.flag for architecture in ARCHITECTURES[:-1]] + [newest.flag_with_ptx]
