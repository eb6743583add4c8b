"""Judging one kernel file: the stages, in order, each in a file of its own.

``check`` is the way in::

    verdict = check(entry, file, device="cpu", seed=None, stages=None, on_progress=None)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from grader.course import Entry
from grader.judge.events import CheckEvent
from grader.verdict import Verdict

if TYPE_CHECKING:
    from grader.course.task import Exercise
    from grader.judge.recorded import Recorded


def check(
    exercise: Entry | Exercise | str,
    file: str | Path | None = None,
    device: str = "cpu",
    seed: int | None = None,
    stages: Sequence[str] | None = None,
    on_progress: Callable[[CheckEvent], None] | None = None,
    details: bool = False,
    gpu: str = "H200",
    on_recording: Callable[[Recorded], None] | None = None,
    own_process: bool = False,
    ahead: bool = False,
) -> Verdict:
    """Judge a file as an answer to an exercise.

    ``exercise``: an ``Entry``, its name, or a whole ``Exercise``. ``file``: the kernel; by default the learner's own.
    ``device``: "cpu" is the simulator, "cuda" a real GPU. ``seed``: of all random inputs; None draws one. ``stages``:
    which to run, by default all that the device has. ``on_progress`` is called from other threads too. ``details``: also
    the floating-point operations of each line, and how long ``gpu`` needs at least for what was counted. ``on_recording`` is given what one block did: that of
    the first finding, or the first one of a small case; it costs one more run. ``own_process``: the kernel is compiled in one, for a caller who
    has yet to import torch. ``ahead``: inputs are drawn while it compiles, for one who waits; in vain where it does not compile.

    A kernel that fails is a verdict. GraderError means that the grader could not judge: no such file, no compiler...
    """
    from grader.judge.driver import run_check

    return run_check(exercise, file, device, seed, stages, on_progress, details, gpu, on_recording, own_process, ahead)
