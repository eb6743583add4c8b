"""nvcc flags for each architecture of this day.

tests/notebooks/test_architectures.py passes every flag to nvcc, if it is installed.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Architecture:
    """An architecture: its name in nvcc, GPUs that have it, and its tensor-core instructions."""

    name: str
    gpus: str
    tensor_cores: str

    @property
    def number(self) -> str:
        """The number in the name, such as 90a for sm_90a."""
        return self.name.removeprefix("sm_")

    @property
    def specific(self) -> bool:
        """True if its code runs on this architecture only, and on no later one."""
        return self.name.endswith("a")

    @property
    def flag(self) -> str:
        """The nvcc flag for machine code of this architecture."""
        return f"-gencode=arch=compute_{self.number},code=sm_{self.number}"

    @property
    def flag_with_ptx(self) -> str:
        """The nvcc flag for machine code and PTX; the driver of a later GPU compiles the PTX at load time."""
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
    """Return the flags for one file with machine code for all architectures and PTX for later ones."""
    newest = ARCHITECTURES[-1]
    return [architecture.flag for architecture in ARCHITECTURES[:-1]] + [newest.flag_with_ptx]
