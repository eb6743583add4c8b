"""On which kinds of machine the course was tried, for ``grader doctor``: of any other it says so."""

from __future__ import annotations

import platform
import sys

PYTHONS = ((3, 11), (3, 13), (3, 14))
"""Where `make demo` and lessons were run: those of CONTRIBUTING's table of machines."""

_WITH_KERNELS = "run the course in a container (.devcontainer/Containerfile) or in WSL 2."


def untried(
    system: str | None = None,
    processor: str | None = None,
    release: str | None = None,
    library: str | None = None,
    python: tuple[int, int] | None = None,
) -> list[str]:
    """Return the properties of this machine that the course was never tried with, a sentence each."""
    system, processor, release = (
        system or platform.system(),
        processor or platform.machine(),
        release or platform.release(),
    )
    library, python = library if library is not None else platform.libc_ver()[0], python or sys.version_info[:2]
    if system != "Linux":
        return [f"{system} is not tried, and kernels do not run there: {_WITH_KERNELS} Neither of the two is tried."]
    said = []
    if processor.lower() not in ("x86_64", "amd64"):
        known = processor.lower() in ("aarch64", "arm64")
        part = (
            " as a whole: only solutions and skeletons on the simulator, in an emulator and without a jail"
            if known
            else ""
        )
        said.append(f"{processor} is not tried{part}.")
    if "microsoft" in release.lower():
        said.append("WSL is not tried.")
    if library != "glibc":
        said.append("A C library other than glibc is not tried.")
    if python not in PYTHONS:
        names = ", ".join(f"{major}.{minor}" for major, minor in PYTHONS)
        said.append(f"Python {python[0]}.{python[1]} is not tried as a whole; {names} are.")
    return said
