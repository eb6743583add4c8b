"""Determines the best kind of sandbox (tier) that works on this machine, once per process."""

from __future__ import annotations

import functools
import os
import platform
import threading
from dataclasses import dataclass
from pathlib import Path

from grader.execution.jail.running import NO_JAIL, Jail
from grader.setup.errors import GraderError

TIERS = ("bwrap", "landlock", "none")

TITLES = {"bwrap": "bubblewrap and seccomp", "landlock": "Landlock and seccomp", "none": "none"}

_ADVICE = {
    "bwrap": (
        "For a stronger sandbox install bubblewrap (Debian, Ubuntu: apt install bubblewrap) and allow it to create "
        "user namespaces. Ubuntu 23.10 and newer allow this only with an AppArmor profile; most containers forbid it."
    ),
    "landlock": "Landlock needs Linux 5.13 or newer, and must not be disabled at boot (lsm=...,landlock).",
}


@dataclass(frozen=True)
class InForce:
    """The tier in which kernels run, and the reasons why better tiers are not used."""

    jail: Jail
    failed: tuple[tuple[str, str], ...] = ()
    """Better tiers that do not work here, each with the reason."""

    @property
    def tier(self) -> str:
        """The name of the tier: bwrap, landlock or none."""
        return self.jail.tier

    @property
    def note(self) -> str:
        """A sentence for the verdict that names the sandbox."""
        if self.tier == "none":
            return (
                "The kernel ran without a sandbox, with your own rights: do not run code that you do not trust. "
                "`grader doctor` explains how to get a sandbox."
            )
        where = "a sandbox with access to the GPU" if self.jail.gpu else "a sandbox"
        return f"The kernel was compiled and run in {where}: {TITLES[self.tier]}."

    @property
    def explanation(self) -> str:
        """An explanation for `grader doctor`: why no better tier is in force, and how to get it."""
        if os.environ.get("GRADER_JAIL"):
            return f"The environment variable GRADER_JAIL={self.tier} selects it." + (
                "" if self.failed else _rights(self.tier)
            )
        parts = [f"{TITLES[tier].partition(' ')[0]} is not used: {reason}." for tier, reason in self.failed]
        parts += [_ADVICE[tier] for tier, _ in self.failed]
        return " ".join(parts) + _rights(self.tier)


def _rights(tier: str) -> str:
    return " Kernels run with your rights: grade only files that you trust." if tier == "none" else ""


_locks: dict[str | None, threading.Lock] = {}


def in_force(arch: str | None = None) -> InForce:
    """Return the best tier that works, or the one that GRADER_JAIL names.

    The tier is for kernels on the simulator, or on a GPU if its architecture ``arch`` is given.
    """
    with _locks.setdefault(arch, threading.Lock()):
        return _find(os.environ.get("GRADER_JAIL", "").strip().lower(), arch)


@functools.cache
def _find(forced: str, arch: str | None) -> InForce:
    if forced and forced not in TIERS:
        raise GraderError(
            f"GRADER_JAIL={forced} is not a sandbox tier", f"Set GRADER_JAIL to one of {', '.join(TIERS)}, or unset it."
        )
    failed: list[tuple[str, str]] = []
    for tier in [forced] if forced else TIERS:
        problem = why_not(tier, arch)
        if not problem:
            return InForce(Jail(tier, arch is not None) if tier != "none" else NO_JAIL, tuple(failed))
        failed.append((tier, problem))
    raise GraderError(
        f"the sandbox tier {forced} does not work on this machine: {failed[0][1]}",
        f"Unset GRADER_JAIL to use the best tier that works. {_ADVICE[forced]}",
    )


def why_not(tier: str, arch: str | None = None) -> str:
    """Try a tier; return the reason why it cannot be used here, or an empty text.

    ``arch`` is the architecture of the GPU that kernels use; None for the simulator.
    """
    if tier == "none":
        return ""
    if platform.system() != "Linux":
        return "it needs Linux (or Docker, or WSL)"
    from grader.execution.runner.canary import escapes
    from grader.execution.runner.program import build_runner

    try:
        runner = build_runner("cuda" if arch else "cpu", arch)
        got = escapes(Jail(tier, arch is not None), _secrets(), runner)
    except GraderError as error:
        return error.message.rstrip(".")
    return f"a program in it could {', '.join(got)}" if got else ""


def _secrets() -> list[Path]:
    """Return files that a kernel must not be able to read: a solution and the tasks of an exercise."""
    from grader.course import Course

    try:
        root = Course().root
    except GraderError:
        return []
    return [*sorted(root.glob("solutions/*/*.cu"))[:1], *sorted(root.glob("exercises/*/tasks.py"))[:1]]
