"""Grades one student, in a process that does nothing else."""

from __future__ import annotations

import codecs
import contextlib
import ctypes
import os
import signal
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from grader.classroom.incidents import Incident
from grader.classroom.instructor import with_hidden_cases
from grader.course import Course, Entry
from grader.errors import GraderError
from grader.jail.staging import own_folder
from grader.verdict import ERROR, Stage, Verdict


@dataclass(frozen=True)
class Order:
    """One student to grade."""

    student: str
    seed: int
    kernels: dict[str, tuple[str, bytes]]
    """By exercise: the file's place in the submission, and its bytes."""
    cases: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    root: Path = Path()


def begin() -> None:
    """A worker ends with the process that started it, and leaves Ctrl-C to it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)
    import torch

    torch.set_num_threads(1)


def in_utf8(content: bytes) -> bytes:
    """Windows writes UTF-16 and, in comments, letters of its own: no reason to fail a kernel that is right."""
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return content.decode("utf-16", errors="replace").encode()
    try:
        content.decode()
    except UnicodeDecodeError:
        return content.decode("cp1252", errors="replace").encode()
    return content


@dataclass
class Graded:
    """What became of a student."""

    verdicts: list[Verdict] = field(default_factory=list)
    """In the order of the exercises."""
    incidents: list[Incident] = field(default_factory=list)


def grade(order: Order) -> Graded:
    """Each exercise by itself: what the grader cannot do with one is no harm to the others."""
    course = Course(order.root)
    graded = Graded()
    for name, (place, content) in order.kernels.items():
        entry = course.find(name)
        try:
            verdict = _verdict(order, entry, content)
        except GraderError as error:
            verdict = could_not_grade(entry, order.seed, str(error))
        except Exception as error:
            graded.incidents.append(Incident.of(error, name))
            verdict = could_not_grade(entry, order.seed, graded.incidents[-1].told)
        verdict.file, verdict.command = place, ""
        _without_seeds(verdict)
        graded.verdicts.append(verdict)
    return graded


def _without_seeds(verdict: Verdict) -> None:
    """Who knows the seed knows the inputs: it is the instructor's. 0 is not shown."""
    verdict.seed = 0
    for stage in verdict.stages:
        for case in stage.cases:
            case.seed = 0


def could_not_grade(entry: Entry, seed: int, why: str) -> Verdict:
    """The verdict of an exercise that the grader could not judge."""
    stage = Stage("builds", ERROR, "could not be graded", message=why)
    return Verdict(entry.name, entry.title, "", "cpu", seed, entry.kind, entry.points, stages=[stage])


def failed(order: Order, entries: dict[str, Entry], incident: Incident) -> Graded:
    """What became of a student whom the grader could not grade at all."""
    graded = Graded(incidents=[incident])
    for name, (place, _) in order.kernels.items():
        graded.verdicts.append(could_not_grade(entries[name], 0, incident.told))
        graded.verdicts[-1].file = place
    return graded


def _verdict(order: Order, entry: Entry, content: bytes) -> Verdict:
    from grader.judge import check

    with tempfile.TemporaryDirectory(dir=own_folder()) as folder:
        file = Path(folder) / f"{entry.variable}.cu"
        file.write_bytes(in_utf8(content))
        os.chmod(file, 0o600)
        task = with_hidden_cases(entry.load(), order.cases.get(entry.name, []))
        return check(task, file, seed=order.seed)
