"""A class, graded: who is done already, several workers, results as they come. Killed at any moment, it goes on later."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import multiprocessing
import os
import re
import secrets
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

import grader
from grader import __version__
from grader.classroom import gradebook, records, similar, tables, worker
from grader.classroom.incidents import Incident, note
from grader.classroom.instructor import Instructions
from grader.classroom.submissions import Submission
from grader.course import Course
from grader.errors import GraderError

STUDENTS_PER_WORKER = 40
"""Then a fresh process takes over, so that memory does not grow."""

Done = Callable[[Submission, dict[str, Any], bool], None]
"""Called for each student, with the results and whether they were there before."""


@dataclass(frozen=True)
class Job:
    """One student to grade."""

    submission: Submission
    key: str
    """Of what is graded, and how."""
    order: worker.Order


@dataclass
class Session:
    """One run of ``grader grade``."""

    course: Course
    submissions: list[Submission]
    out: Path
    instructions: Instructions = field(default_factory=Instructions)
    exercises: tuple[str, ...] = ()
    """Which to grade; none: all that a submission has."""
    workers: int = 2

    def __post_init__(self) -> None:
        try:
            self.out.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise GraderError(f"cannot write {self.out}: {error.strerror}") from error
        self.seed = self.instructions.seed if self.instructions.seed is not None else self._kept_seed()
        self.entries = {entry.name: entry for entry in self.course.exercises}

    def run(self, on_done: Done) -> list[dict[str, Any]]:
        """Grade whoever is not graded; the results of all, in the order of the submissions."""
        records.remove_unfinished(self.out)
        results: dict[str, dict[str, Any]] = {}
        jobs = []
        for submission in self.submissions:
            job = self._job(submission)
            before = records.read_student(self.out, submission)
            if before and before.get("key") == job.key and not records.could_not_grade(before):
                results[submission.folder_name] = before
                on_done(submission, before, True)
            else:
                jobs.append(job)
        with contextlib.closing(self._grade(jobs)) as done:
            for job, graded in done:
                result = self._write(job, graded)
                results[job.submission.folder_name] = result
                on_done(job.submission, result, False)
        return [results[submission.folder_name] for submission in self.submissions]

    def _job(self, submission: Submission) -> Job:
        kernels = self._kernels(submission)
        cases = {name: self.instructions.cases.get(name, []) for name in kernels}
        order = worker.Order(submission.student, self.seed, kernels, cases, self.course.root)
        return Job(submission, self._key(submission, kernels), order)

    def _grade(self, jobs: Sequence[Job]) -> Generator[tuple[Job, worker.Graded]]:
        """What became of each job, as it comes.

        When a process ends, all that were at work at that time are tried again, one by one: who ends a process alone is
        the one, and the others are none the worse.
        """
        waiting, suspects = list(reversed(jobs)), list[Job]()
        pending: dict[Future[worker.Graded], Job] = {}
        executor = self._executor()
        try:
            while waiting or suspects or pending:
                source, most = (suspects, 1) if suspects else (waiting, 2 * self.workers)
                while source and len(pending) < most:
                    job = source.pop()
                    try:
                        future = executor.submit(worker.grade, job.order)
                    except BrokenProcessPool:  # since the last look
                        executor = self._executor()
                        future = executor.submit(worker.grade, job.order)
                    pending[future] = job
                alone = len(pending) == 1
                finished, _ = wait(pending, return_when=FIRST_COMPLETED)
                if any(isinstance(future.exception(), BrokenProcessPool) for future in finished):
                    finished, _ = wait(pending)
                    executor.shutdown(wait=False)
                    executor = self._executor()
                for future in finished:
                    job = pending.pop(future)
                    error = future.exception()
                    if isinstance(error, BrokenProcessPool) and not alone:
                        suspects.append(job)
                    elif isinstance(error, BrokenProcessPool):
                        self._try(executor)
                        yield job, self._failed(job, error)
                    elif isinstance(error, GraderError):
                        raise error
                    else:
                        yield job, self._failed(job, error) if error else future.result()
        finally:
            executor.shutdown(wait=False, cancel_futures=True)

    def _executor(self) -> ProcessPoolExecutor:
        context = multiprocessing.get_context("spawn")
        return ProcessPoolExecutor(self.workers, context, worker.begin, max_tasks_per_child=STUDENTS_PER_WORKER)

    @staticmethod
    def _try(executor: ProcessPoolExecutor) -> None:
        """Whether a process without a student in it works: where none does, the class stops here."""
        try:
            executor.submit(os.getpid).result()
        except BrokenProcessPool as error:
            raise GraderError(
                "a process that grades ended, most likely because memory ran out",
                "The same command goes on where it stopped; --workers 1 needs less memory.",
            ) from error

    def _failed(self, job: Job, error: BaseException) -> worker.Graded:
        return worker.failed(job.order, self.entries, Incident.of(error, "grading"))

    def _write(self, job: Job, graded: worker.Graded) -> dict[str, Any]:
        """The student's files, and the log for the instructor."""
        submission, wanted = job.submission, list(self._wanted())
        if submission.incident:
            graded.incidents.append(submission.incident)
        try:
            records.write_student(self.out, submission, job.key, wanted, graded, self._remarks(submission))
        except GraderError:
            raise
        except Exception as error:
            noted = [*graded.incidents, Incident.of(error, "writing the results")]
            graded = worker.failed(job.order, self.entries, noted[-1])
            graded.incidents = noted
            records.write_student(self.out, submission, job.key, wanted, graded, [])
        for incident in graded.incidents:
            note(self.out, submission.student, incident)
        result = records.read_student(self.out, submission)
        assert result
        return result

    def finish(self, results: list[dict[str, Any]]) -> tuple[Path, list[similar.Pair]]:
        """grades.json, grades.csv and similar.csv."""
        policy = self.instructions.policy
        book = gradebook.make(self.course, self.submissions, results, policy)
        gradebook.save(book, self.out)
        grades = tables.write_grades(self.out, results, book if policy.given else None)
        handed_in: dict[str, dict[str, bytes]] = {}
        for submission in self.submissions:
            for name, (_, content) in self._kernels(submission).items():
                handed_in.setdefault(name, {})[submission.student] = content
        pairs = []
        for name, files in sorted(handed_in.items()):
            grams = {}
            for student, content in files.items():
                try:
                    grams[student] = similar.k_grams(content.decode("utf-8", errors="replace"))
                except Exception as error:
                    note(self.out, student, Incident.of(error, f"comparing {name} with others"))
            pairs += similar.similar(name, grams, similar.given(self.entries[name]))
        tables.write_similar(self.out, pairs)
        return grades, pairs

    def _wanted(self) -> tuple[str, ...]:
        return self.exercises or self.instructions.exercises

    def _kernels(self, submission: Submission) -> dict[str, tuple[str, bytes]]:
        """The files of a submission by exercise: by the file's name, and by the day where two days have that name."""
        found: dict[str, tuple[str, bytes]] = {}
        for place, content in sorted(submission.kernels.items()):
            path = PurePosixPath(place)
            matching = [entry for entry in self.entries.values() if entry.variable == _without_copy(path.stem)]
            if len(matching) > 1:
                matching = [entry for entry in matching if entry.day in path.parts]
            if len(matching) == 1 and (not self._wanted() or matching[0].name in self._wanted()):
                found.setdefault(matching[0].name, (place, content))
        return dict(sorted(found.items()))

    def _remarks(self, submission: Submission) -> list[str]:
        """What the student and the instructor should know of the files: those that were not graded."""
        graded = {place for place, _ in self._kernels(submission).values()}
        names = {entry.variable for entry in self.entries.values()}
        left = [place for place in sorted(submission.kernels) if place not in graded]
        twice = [place for place in left if _without_copy(PurePosixPath(place).stem) in names]
        unknown = [place for place in left if place not in twice]
        remarks = []
        if twice:
            remarks.append(f"not graded, as another file has that exercise or it was not asked for: {_listed(twice)}")
        if unknown:
            remarks.append(f"not graded, as no exercise has that name: {_listed(unknown)}")
        return remarks

    def _key(self, submission: Submission, kernels: dict[str, tuple[str, bytes]]) -> str:
        """Changes with all that decides the grade."""
        parts = [
            __version__,
            code_digest(),
            str(self.seed),
            self.instructions.digest,
            submission.digest,
            *self._wanted(),
        ]
        for name in kernels or self._wanted():
            parts += [name, hashlib.sha256(self.entries[name].tasks.read_bytes()).hexdigest()]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]

    def _kept_seed(self) -> int:
        """Drawn once for a folder of results, so that an interrupted run goes on with the same inputs."""
        path = self.out / "seed.json"
        try:
            return int(json.loads(path.read_text())["seed"])
        except FileNotFoundError:
            seed = secrets.randbits(48)
            records.write(path, json.dumps({"seed": seed}) + "\n")
            return seed
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise GraderError(f"{path} cannot be read: {error}", "Delete it to draw a new seed.") from error


@functools.cache
def code_digest() -> str:
    """Of all that judges: with another grader or simulator, every grade is made anew."""
    digest = hashlib.sha256()
    package = Path(grader.__file__).parent
    for path in sorted(package.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            digest.update(f"{path.relative_to(package)}\0".encode() + path.read_bytes())
    return digest.hexdigest()


def _without_copy(stem: str) -> str:
    """The name of a file without what browsers and learning systems add to a second copy: " (1)", "-1"."""
    return re.sub(r"( ?\(\d+\)|-\d+)$", "", stem).lower()


def _listed(places: list[str]) -> str:
    """A few names, safe to print."""
    shown = ", ".join(records.printable(place) for place in places[:3])
    return f"{shown} and {len(places) - 3} more" if len(places) > 3 else shown
