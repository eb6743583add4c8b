"""Leaderboards of bytes moved and of time, for students who passed and opted in.

Bytes are the simulator's counter in the case of the stage *efficient*, which is the same for all students. Times are
measured by the grader's own clock on a GPU (``verified_us``), because the kernel's own process could manipulate its
measurements.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from grader.classroom.stored import Stored
from grader.verdict import Verdict


@dataclass(frozen=True)
class Row:
    """One row of a leaderboard."""

    name: str
    value: float
    """Bytes, or microseconds."""
    ratio: float | None = None
    """Bytes relative to the minimum of the exercise."""
    error: float | None = None
    """The standard error of a time."""
    rank: int = 0


@dataclass
class Board:
    """The leaderboards of one exercise."""

    exercise: str
    title: str
    passed: int = 0
    traffic: list[Row] = field(default_factory=list)
    times: list[tuple[str, list[Row]]] = field(default_factory=list)
    """The rows of each size and dtype."""


def boards(students: Iterable[Stored]) -> list[Board]:
    """Return the leaderboards of each exercise that a student who opted in has passed."""
    passed: dict[str, list[tuple[str, Verdict]]] = {}
    for student in students:
        for verdict in student.verdicts:
            if verdict.passed:
                passed.setdefault(verdict.exercise, []).append((student.nickname, verdict))
    made = [_board(exercise, entries) for exercise, entries in sorted(passed.items())]
    return [board for board in made if board.traffic or board.times]


def _board(exercise: str, entries: list[tuple[str, Verdict]]) -> Board:
    board = Board(exercise, entries[0][1].title, len(entries))
    times: dict[str, list[Row]] = {}
    for name, verdict in entries:
        if not name:
            continue
        counted = traffic_of(verdict)
        if counted is not None:
            board.traffic.append(Row(name, counted[0], ratio=counted[1]))
        for size, microseconds, error in times_of(verdict):
            times.setdefault(size, []).append(Row(name, microseconds, error=error))
    board.traffic = _ranked(board.traffic)
    board.times = [(size, _ranked(rows)) for size, rows in times.items()]
    return board


def traffic_of(verdict: Verdict) -> tuple[float, float | None] | None:
    """Return the bytes of global memory in the counted case, and their ratio to the minimum.

    Return None if nothing was counted.
    """
    stage = verdict.stage("efficient")
    if stage is None or not stage.totals.get("global_bytes"):
        return None
    counted = stage.totals["global_bytes"]
    minimum = next((bar.values["minimum"] for bar in stage.bars if bar.values.get("minimum")), None)
    return counted, counted / minimum if minimum else None


def times_of(verdict: Verdict) -> list[tuple[str, float, float | None]]:
    """Return each timed size with its microseconds and their standard error, measured with the grader's own clock."""
    stage = verdict.stage("fast")
    timings = stage.timings if stage else []
    return [
        (f"{timing.name} ({timing.dtype})", timing.verified_us, timing.verified_error_us)
        for timing in timings
        if timing.verified_us is not None
    ]


def _ranked(rows: list[Row]) -> list[Row]:
    """Sort the rows and set their ranks; equal values share a rank."""
    values = sorted(row.value for row in rows)
    ranked = [replace(row, rank=values.index(row.value) + 1) for row in rows]
    return sorted(ranked, key=lambda row: (row.rank, row.name))
