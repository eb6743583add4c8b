"""Grade one job, in a process of its own."""

from __future__ import annotations

import codecs
import contextlib
import ctypes
import functools
import json
import os
import signal
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path

from grader.classroom.incidents import Incident
from grader.classroom.instructor import with_hidden_cases
from grader.classroom.jobs import Job
from grader.course import Course, Entry
from grader.execution.jail.staging import own_folder
from grader.execution.runner import tiers
from grader.setup.errors import GraderError
from grader.verdict import ERROR, Stage, Verdict

JOBS_PER_WORKER = 100
"""The number of jobs after which a worker process is replaced, so that its memory use does not grow."""

Grade = Callable[[Job], "Graded"]


def begin() -> None:
    """Prepare a worker process: it ends when its parent ends, ignores Ctrl-C, and saves processor time."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)
    save_time()


def save_time() -> None:
    """Limit this process to one core, because other workers use the others, and a kernel to one case that times out."""
    import torch

    from grader.judge import cases

    torch.set_num_threads(1)
    cases.CHILDREN = 1
    cases.MOST_TIMEOUTS = 1


def require_sandbox(unsafe: bool, danger: str, option: str = "--unsafe") -> bool:
    """Return whether submissions run in a sandbox here. If not and not ``unsafe``, raise GraderError(``danger``)."""
    held = tiers.in_force()
    if held.tier == "none" and not unsafe:
        raise GraderError(danger, f"{held.explanation.strip()}\n{option} grades anyway.")
    return held.tier != "none"


def in_utf8(content: bytes) -> bytes:
    """Convert a kernel to UTF-8. Editors on Windows may save it as UTF-16 or in code page 1252."""
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return content.decode("utf-16", errors="replace").encode()
    try:
        content.decode()
    except UnicodeDecodeError:
        return content.decode("cp1252", errors="replace").encode()
    return content


@dataclass
class Graded:
    """The result of a job, or of all jobs of a student."""

    verdicts: list[Verdict] = field(default_factory=list)
    """The verdicts, in the order of the exercises."""
    incidents: list[Incident] = field(default_factory=list)
    seconds: float = 0.0
    """The grading time of the job, or of all jobs."""

    def to_json(self) -> bytes:
        """Return the result as JSON, to send and to store."""
        verdicts = [verdict.to_dict() for verdict in self.verdicts]
        incidents = [asdict(incident) for incident in self.incidents]
        data = {"seconds": self.seconds, "verdicts": verdicts, "incidents": incidents}
        return json.dumps(data, allow_nan=False).encode()

    @classmethod
    def from_json(cls, text: bytes) -> Graded:
        """Parse the output of ``to_json``; raise ValueError, KeyError, TypeError or GraderError for anything else."""
        data = json.loads(text)
        verdicts = [Verdict.from_dict(verdict) for verdict in data["verdicts"]]
        return cls(verdicts, [Incident(**incident) for incident in data["incidents"]], float(data["seconds"]))


def grade(job: Job) -> Graded:
    """Grade one job; a failure of the grader affects only this job."""
    began = time.monotonic()
    graded = Graded()
    entry = _course(job.root).find(job.exercise)
    try:
        verdict = _verdict(job, entry)
    except GraderError as error:
        verdict = could_not_grade(entry, str(error))
    except Exception as error:
        graded.incidents.append(Incident.of(error, job.exercise))
        verdict = could_not_grade(entry, graded.incidents[-1].told)
    verdict.file, verdict.command = entry.file_name, ""
    _without_seeds(verdict)
    graded.verdicts.append(verdict)
    graded.seconds = time.monotonic() - began
    return graded


@functools.cache
def _course(root: Path) -> Course:
    """Return the course of all jobs of this process, which is parsed once."""
    return Course(root)


def _without_seeds(verdict: Verdict) -> None:
    """Remove the seed from a verdict, because it reveals the inputs. Reports do not show a seed of 0."""
    verdict.seed = 0
    for stage in verdict.stages:
        for case in stage.cases:
            case.seed = 0


def could_not_grade(entry: Entry, why: str) -> Verdict:
    """Return the verdict of an exercise that the grader could not judge."""
    stage = Stage("builds", ERROR, "could not be graded", message=why)
    return Verdict(entry.name, entry.title, "", "cpu", 0, entry.kind, entry.points, stages=[stage])


def failed(entry: Entry, incident: Incident) -> Graded:
    """Return the result of a job that the grader could not grade at all."""
    return Graded([could_not_grade(entry, incident.told)], [incident])


def _verdict(job: Job, entry: Entry) -> Verdict:
    from grader.judge import check

    with tempfile.TemporaryDirectory(dir=own_folder()) as folder:
        file = Path(folder) / entry.file_name
        file.write_bytes(in_utf8(job.content))
        os.chmod(file, 0o600)
        task = with_hidden_cases(entry.load(), job.cases)
        stages = None if job.device == "cpu" else ("correct", "fast")
        verdict = check(task, file, device=job.device, seed=job.seed, stages=stages)
    # The folder is temporary and differs each time: remove its path from lines, findings and messages.
    place = json.dumps(f"{folder}/")[1:-1]
    return Verdict.from_dict(json.loads(json.dumps(verdict.to_dict()).replace(place, "")))
