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

from grader.classroom.instructor import with_hidden_cases
from grader.course import Course
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


def grade(order: Order) -> list[Verdict]:
    """The verdicts, in the order of the exercises."""
    from grader.judge import check

    course = Course(order.root)
    verdicts = []
    for name, (place, content) in order.kernels.items():
        entry = course.find(name)
        with tempfile.TemporaryDirectory(dir=own_folder()) as folder:
            file = Path(folder) / f"{entry.variable}.cu"
            file.write_bytes(in_utf8(content))
            os.chmod(file, 0o600)
            try:
                task = with_hidden_cases(entry.load(), order.cases.get(name, []))
                verdict = check(task, file, seed=order.seed)
            except GraderError as error:
                stage = Stage("builds", ERROR, "could not be graded", text=str(error))
                verdict = Verdict(name, entry.title, place, "cpu", order.seed, entry.kind, entry.points, stages=[stage])
        verdict.file, verdict.command = place, ""
        verdicts.append(verdict)
    return verdicts
