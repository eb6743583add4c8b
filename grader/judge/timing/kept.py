"""Keeps the result of the stage *fast*, so that another check of an unchanged kernel need not measure again.

Only a learner's own check uses it, and it names the time of the measurement. ``grader grade`` and ``grader bench``
always measure. A result is kept in the build cache, under a hash of everything that it depends on, and only if the
kernel passed: a kernel that was too slow is measured at each check.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import grader
from grader.course import Entry
from grader.course.task import Exercise
from grader.execution.build.build import plan_kernel
from grader.execution.jail.programs import CONFINE
from grader.execution.runner.gpu import driver_version, gpu_architecture, uuid
from grader.execution.runner.program import SOURCE
from grader.frontend.toolchain.cache import BuildCache, digest, digest_folder, open_cache
from grader.setup.errors import GraderError
from grader.verdict import PASSED, Stage, codec
from grader.verdict.wording import timed

SECONDS = 24 * 3600.0
"""The age of a result after which it is not used any more."""

_FILE = "stage.json"


@dataclass
class Kept:
    """The place of the result for one kernel file, exercise and GPU."""

    key: str
    cache: BuildCache
    tier: str = ""
    """The tier of the sandbox in which the kernel runs."""
    clock: Callable[[], float] = time.time

    @property
    def exists(self) -> bool:
        """True if a result is kept, although it may be too old."""
        return self.cache.find(self.key) is not None

    def find(self) -> Stage | None:
        """Return the result of an earlier check in a sandbox of the same tier; None if there is none."""
        entry = self.cache.find(self.key)
        try:
            content = json.loads((entry / _FILE).read_text(encoding="utf-8")) if entry else {}
            age = self.clock() - float(content["measured"])
            if content["tier"] != self.tier or not 0 <= age < SECONDS:
                return None
            stage = codec.decode(Stage, content["stage"])
        except (OSError, ValueError, KeyError, TypeError, GraderError):
            return None
        stage.summary = f"{stage.summary} ({timed.measured_before(age)})"
        stage.note = timed.MEASURED_BEFORE
        return stage

    def keep(self, stage: Stage) -> None:
        """Replace the kept result, or remove it if the kernel did not pass."""
        self.cache.remove(self.key)
        if stage.status == PASSED:
            content = {"measured": self.clock(), "tier": self.tier, "stage": codec.plain(stage)}
            text = json.dumps(content)
            self.cache.get(self.key, lambda folder: _write(folder / _FILE, text), "the measured times")


def kept(entry: Entry, task: Exercise, file: Path) -> Kept | None:
    """Return the place for a kernel's result; None if the front end refuses the file."""
    import torch

    try:
        kernel = plan_kernel(file, "cuda", checks=False, arch=gpu_architecture(task.architecture)).key
    except GraderError:
        return None
    parts = [
        *("times", entry.name, kernel, uuid(), str(driver_version()), str(torch.__version__), grader.__version__),
        *(digest_folder([folder]) for folder in (SOURCE, CONFINE)),
        digest_folder([Path(__file__).parents[1]], ["*.py"]),
        digest_folder([entry.root / "exercises"], ["tasks.py"]),
        repr(task.time_bars),
    ]
    return Kept(digest(parts), open_cache())


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
