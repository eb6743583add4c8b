"""The kinds of machine on which the course was tested. ``grader doctor`` names what differs on this machine."""

from __future__ import annotations

from grader.setup import shipped

PYTHONS = ((3, 11), (3, 13), (3, 14))
"""The Python versions with which the demo and the lessons were tested: see the table of machines in tests/README.md."""

_CONTAINER = "a Linux container" if shipped.IN_WHEEL else "a container (.devcontainer/Containerfile)"
_WITH_KERNELS = f"run the course in {_CONTAINER} or in WSL 2."


def untested(system: str, processor: str, release: str, library: str, python: tuple[int, int]) -> list[str]:
    """Return a sentence for each property of a machine with which the course was not tested.

    ``library``: the name of the C library.
    """
    if system != "Linux":
        return [f"{system} was not tested, and kernels do not run there. Instead, {_WITH_KERNELS} Neither was tested."]
    said = []
    if processor.lower() not in ("x86_64", "amd64"):
        known = processor.lower() in ("aarch64", "arm64")
        part = (
            " as a whole: only solutions and skeletons on the simulator, in an emulator and without a sandbox"
            if known
            else ""
        )
        said.append(f"{processor} was not tested{part}.")
    if "microsoft" in release.lower():
        said.append("WSL was not tested.")
    if library != "glibc":
        said.append("A C library other than glibc was not tested.")
    if python not in PYTHONS:
        names = ", ".join(f"{major}.{minor}" for major, minor in PYTHONS)
        said.append(f"Python {python[0]}.{python[1]} was only partly tested; {names} were fully tested.")
    return said
