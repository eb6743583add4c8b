"""The grading of a class: it keeps the results of finished students and runs the jobs of the others."""

from __future__ import annotations

import contextlib
import difflib
import hashlib
import itertools
import json
import re
import secrets
import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from grader import __version__
from grader.classroom import cells, gradebook, jobs, on_gpu, records, similar, tables, worker
from grader.classroom.executor import MOST_DEATHS, MOST_LOSSES, Died, Executor
from grader.classroom.incidents import Incident, note
from grader.classroom.instructor import Instructions
from grader.classroom.jobs import Job
from grader.classroom.local import Local
from grader.classroom.result import StudentResult
from grader.classroom.store import Plan, Store
from grader.classroom.stored import shown_name
from grader.classroom.submissions import Submission
from grader.classroom.worker import Graded
from grader.course import Course
from grader.course.learner import pristine
from grader.setup.errors import GraderError
from grader.setup.files import make_folder, write_file

Done = Callable[[Submission, StudentResult, bool], None]
"""Called for each student, with the results, and True if they come from an earlier run."""
Counted = Callable[[int, int], None]
"""Called with the number of finished jobs and the number of all jobs."""


@dataclass
class Student:
    """One submission, and its jobs."""

    submission: Submission
    key: str
    """A hash of the graded files and of the settings."""
    places: dict[str, str]
    """The path of each exercise's file in the submission."""
    jobs: dict[str, Job]
    """The jobs by exercise, in order."""
    unchanged: tuple[str, ...] = ()
    """The exercises whose file is the skeleton."""
    missing: set[str] = field(default_factory=set)
    """The keys of this student's unfinished jobs."""

    @property
    def keys(self) -> list[str]:
        """Return the keys of all jobs."""
        return [step.key for job in self.jobs.values() for step in job.steps]


@dataclass
class Session:
    """One run of ``grader grade``."""

    course: Course
    submissions: list[Submission]
    out: Path
    instructions: Instructions = field(default_factory=Instructions)
    exercises: tuple[str, ...] = ()
    """The exercises to grade; if empty, every exercise that a submission contains."""
    workers: int = 2
    executor: Callable[[], Executor] | None = None
    """Create the executor, if there are jobs. None: processes of this machine."""
    device: str = "cpu"
    """The device; ``cuda``: kernels that pass on the simulator also run on a GPU, with times."""
    again_students: tuple[str, ...] = ()
    """Students who are graded again in all exercises."""
    again_exercises: tuple[str, ...] = ()
    """Exercises that are graded again for all students."""

    def __post_init__(self) -> None:
        make_folder(self.out)
        names = {submission.student for submission in self.submissions}
        by_cell = {cells.no_formula(name): name for name in names}  # as grades.csv shows the names
        self.again_students = tuple(name if name in names else by_cell.get(name, name) for name in self.again_students)
        self.seed = self.instructions.seed if self.instructions.seed is not None else self._kept_seed()
        self.entries = {entry.name: entry for entry in self.course.exercises}
        self.store = Store(self.out)
        self._skeletons: dict[str, list[bytes] | None] = {}

    def run(self, on_done: Done, on_job: Counted = lambda done, total: None) -> list[StudentResult]:
        """Grade the remaining students; return the results of all, in the order of the submissions."""
        self.store.make()
        with self.store.alone():
            records.remove_unfinished(self.out)
            students = [self._student(submission) for submission in self.submissions]
            self._forget(students)
            results = self._kept(students, on_done)
            left = [student for student in students if student.submission.folder_name not in results]
            with contextlib.closing(self._grade(students, left, on_job)) as finished:
                for student in finished:
                    results[student.submission.folder_name] = result = self._write(student)
                    on_done(student.submission, result, False)
        return [results[submission.folder_name] for submission in self.submissions]

    def _student(self, submission: Submission) -> Student:
        kernels = self._kernels(submission)
        found = {}
        for name, (_, content) in kernels.items():
            cases = self.instructions.cases.get(name, [])
            found[name] = jobs.plan(self.entries[name], content, self.seed, cases, self.course.root, self.device)
        parts = [__version__, jobs.code_digest(), str(self.seed), self.instructions.digest, submission.digest]
        parts += [*self._wanted(), *(job.key for job in found.values()), self.device]
        key = hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]
        unchanged = tuple(name for name, (_, content) in kernels.items() if self._is_skeleton(name, content))
        return Student(submission, key, {name: place for name, (place, _) in kernels.items()}, found, unchanged)

    def _is_skeleton(self, name: str, content: bytes) -> bool:
        """Return whether a file is the unchanged skeleton of an exercise."""
        return name in self.entries and worker.in_utf8(content).split() == self._skeleton(name)

    def _skeleton(self, name: str) -> list[bytes] | None:
        """Return the words of an exercise's skeleton, for comparisons without whitespace; None if it is missing."""
        if name not in self._skeletons:
            entry = self.entries[name]
            given = pristine.find(self.course, entry)
            content = given.content if given else entry.skeleton.read_bytes() if entry.skeleton.is_file() else None
            self._skeletons[name] = None if content is None else content.split()
        return self._skeletons[name]

    def _forget(self, students: list[Student]) -> None:
        """Delete the results to grade again. If this run is then killed, the next run grades them."""
        known = {student.submission.student for student in students}
        for name in set(self.again_students) - known:
            shown = sorted(student for student in known if shown_name(student) == name)
            close = shown[:3] or difflib.get_close_matches(name, known, n=3)
            hint = f"Did you mean {' or '.join(map(repr, close))}?" if close else "Name the student as grades.csv does."
            raise GraderError(f"there is no student {name!r} in this class", hint)
        for student in students:
            for name, job in student.jobs.items():
                if student.submission.student in self.again_students or name in self.again_exercises:
                    for step in job.steps:
                        self.store.forget(step.key)

    def _kept(self, students: list[Student], on_done: Done) -> dict[str, StudentResult]:
        """Return the results of finished students by folder name; set ``missing`` of the others."""
        done = self.store.done({key for student in students for key in student.keys})
        results = {}
        for student in students:
            before = records.read_student(self.out, student.submission) if done.issuperset(student.keys) else None
            # A new attempt may have the same files under a new name, which the exports need.
            wanted = student.key, student.submission.path.name
            if before and wanted == (before.key, before.submission) and not before.failed:
                results[student.submission.folder_name] = before
                on_done(student.submission, before, True)
                continue
            for job in student.jobs.values():
                steps = job.steps
                while steps and steps[0].key in done and self._judged(steps[0]):
                    steps = steps[1:]
                student.missing.update(step.key for step in steps)
        return results

    def _judged(self, job: Job) -> bool:
        """Return whether the job has a valid verdict. If the grader failed, the job has none and runs again."""
        graded = self.store.read(job.key)
        return graded is not None and not graded.incidents and all(v.exit_code != 2 for v in graded.verdicts)

    def _grade(self, students: list[Student], left: list[Student], on_job: Counted) -> Generator[Student]:
        """Run the missing jobs; yield each student when all jobs of that student are done."""
        ready, waiting = list[Job](), defaultdict[str, list[Student]](list)
        for student in left:
            for job in student.jobs.values():
                for step in job.steps:
                    if step.key in student.missing:
                        if step is next(s for s in job.steps if s.key in student.missing) and step.key not in waiting:
                            ready.append(step)
                        waiting[step.key].append(student)
        yield from (student for student in left if not student.missing)
        if not waiting:
            return
        steps = {step.key: step for student in students for job in student.jobs.values() for step in job.steps}
        finished = len(steps) - len(waiting)
        on_job(finished, len(steps))
        executor = self.executor() if self.executor else Local(self.workers)
        names = {key: step.exercise + on_gpu.MARK * (step.device != "cpu") for key, step in steps.items()}
        self.store.write_plan(Plan(executor.name, time.time(), len(students), names))
        with contextlib.closing(executor):
            # Jobs that may be endless take many times as long as others: start them first.
            queue = deque(sorted(ready, key=lambda job: not job.may_not_end))
            for job, answer in self._answers(queue, executor):
                done = [job.key]
                self.store.write(job.key, answer)
                if job.then and job.then.key in waiting:
                    if on_gpu.wanted(Graded.from_json(answer)):
                        queue.appendleft(job.then)
                    else:
                        self.store.write(job.then.key, Graded().to_json())
                        done.append(job.then.key)
                finished += len(done)
                on_job(finished, len(steps))
                for key in done:
                    for student in waiting.pop(key):
                        student.missing.discard(key)
                        if not student.missing:
                            yield student

    def _answers(self, queue: deque[Job], executor: Executor) -> Generator[tuple[Job, bytes]]:
        """Yield each job with its result, as results arrive. Retry a job whose worker died."""
        deaths, losses = Counter[str](), Counter[str]()

        def hand_out() -> None:
            while queue and executor.room:
                executor.submit(queue.popleft())

        while queue or executor.busy:
            hand_out()
            answers = []
            for job, outcome in executor.wait():
                if isinstance(outcome, Died):
                    count, most = (losses, MOST_LOSSES) if outcome.machine else (deaths, MOST_DEATHS)
                    count[job.key] += 1
                    if count[job.key] < most:
                        queue.appendleft(job)
                        continue
                    incident = Incident(f"grading {job.exercise}, {count[job.key]} times", outcome.why)
                    outcome = worker.failed(self.entries[job.exercise], incident).to_json()
                answers.append((job, outcome))
            hand_out()  # hand out jobs before writing results, so that workers do not wait
            yield from answers

    def _write(self, student: Student) -> StudentResult:
        """Write the student's files, and the log for the instructor."""
        submission, graded = student.submission, self._of(student)
        if submission.incident:
            graded.incidents.append(submission.incident)
        try:
            result = self._result(student, graded)
            result.remarks += self._remarks(submission)
            result.remarks += [
                f"the file for {name} is empty"
                for name, place in student.places.items()
                if not submission.kernels[place].strip()
            ]
            result.remarks += [
                f"the file for {name} is the unchanged skeleton, which earns nothing" for name in student.unchanged
            ]
            result.unchanged += student.unchanged
            records.write_student(self.out, submission, result)
        except GraderError:
            raise
        except Exception as error:
            noted = [*graded.incidents, Incident.of(error, "writing the results")]
            graded = _together(worker.failed(self.entries[name], noted[-1]) for name in student.jobs)
            graded.incidents = noted
            result = self._result(student, graded)
            records.write_student(self.out, submission, result)
        for incident in graded.incidents:
            note(self.out, submission.student, incident)
        return result

    def _result(self, student: Student, graded: Graded) -> StudentResult:
        submission, found = student.submission, {verdict.exercise for verdict in graded.verdicts}
        return StudentResult(
            submission.student,
            submission.path.name,
            student.key,
            submission.refused,
            missing=[name for name in self._wanted() if name not in found],
            references=[incident.reference for incident in graded.incidents],
            verdicts=graded.verdicts,
        )

    def _of(self, student: Student) -> Graded:
        """Return the results of a student's jobs, with one verdict for the simulator and the GPU together."""
        found = []
        for name, job in student.jobs.items():
            steps = [self.store.read(step.key) for step in job.steps]
            graded = _together(step for step in steps if step is not None)
            if None in steps:
                raise GraderError(
                    f"a file of {self.store.folder} is missing or damaged", "Run the same command to grade it again."
                )
            graded.verdicts = [on_gpu.merged(graded.verdicts)]
            graded.verdicts[0].file = student.places[name]
            found.append(graded)
        return _together(found)

    def finish(self, results: list[StudentResult]) -> tuple[Path, list[similar.Pair]]:
        """Write grades.json, grades.csv and similar.csv; return the path of grades.csv and the similar pairs."""
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
                    text = worker.in_utf8(content).decode(errors="replace")
                    grams[student] = similar.k_grams(text, self.entries[name].language)
                except Exception as error:
                    note(self.out, student, Incident.of(error, f"comparing {name} with others"))
            pairs += similar.similar(name, grams, similar.given(self.entries[name]))
        tables.write_similar(self.out, pairs)
        return grades, pairs

    def _wanted(self) -> tuple[str, ...]:
        return self.exercises or self.instructions.exercises

    def _kernels(self, submission: Submission) -> dict[str, tuple[str, bytes]]:
        """Return the path and content of each exercise's file in a submission.

        The file name identifies the exercise. If two days have an exercise of that name, the folder's name identifies
        the day.
        """
        found: dict[str, tuple[str, bytes]] = {}
        days = {name.partition("/")[0] for name in self.course.former_names} - {
            entry.day for entry in self.entries.values()
        }

        # If an exercise was renamed, a file with the present name has priority over one with a former name.
        # A file in a nested archive, a copy that a browser named, a file outside of the course's folders, and a file in
        # a deeper folder count only where there is no other file.
        def rank(candidate: tuple[bool, str]) -> tuple[int, bool, bool, bool, bool, int, str]:
            former, place = candidate
            path = PurePosixPath(place)
            copied = _without_copy(path.stem) != path.stem.lower()
            of_former_day = not days.isdisjoint(path.parts)
            elsewhere = not self._in_layout(place)
            return _archives(path), former, of_former_day, copied, elsewhere, len(path.parts), place

        for former, place in sorted(itertools.product((False, True), submission.kernels), key=rank):
            name = self._exercise_of(place, former)
            if name and (not self._wanted() or name in self._wanted()):
                found.setdefault(name, (place, submission.kernels[place]))
        return dict(sorted(found.items()))

    def _in_layout(self, place: str) -> bool:
        """Return whether a file is DAY/NAME or exercises/DAY/NAME in its archive, as in the course."""
        *folders, day, _ = ("", *PurePosixPath(re.sub(r".*\.zip/", "", place, flags=re.IGNORECASE)).parts)
        return day in {entry.day for entry in self.entries.values()} and folders in ([""], ["", "exercises"])

    def _exercise_of(self, place: str, former: bool) -> str:
        """Return the exercise that a file is named after, by present or former names.

        Empty if no exercise, or more than one, matches.
        """
        path = PurePosixPath(place)
        names = self.course.former_names if former else self.entries
        ending = f"/{_without_copy(path.stem)}"
        matching = {
            name: entry
            for name, entry in names.items()
            if name.endswith(ending) and entry.skeleton.suffix == path.suffix.lower()
        }
        if len({entry.name for entry in matching.values()}) > 1:
            matching = {name: entry for name, entry in matching.items() if name.partition("/")[0] in path.parts}
        exercises = {entry.name for entry in matching.values()}
        return exercises.pop() if len(exercises) == 1 else ""

    def _remarks(self, submission: Submission) -> list[str]:
        """Return remarks for the student and the instructor about files that were not graded."""
        graded = {place for place, _ in self._kernels(submission).values()}
        names = {name.partition("/")[2] for name in [*self.entries, *self.course.former_names]}
        # A copy of the course has Python files that are no exercises: report them only if nothing is graded.
        left = [place for place in sorted(submission.kernels) if place not in graded]
        left = [place for place in left if not graded or not place.lower().endswith(".py")]
        left = [
            place for place in left if not self._is_skeleton(self._exercise_of(place, False), submission.kernels[place])
        ]
        twice = [place for place in left if _without_copy(PurePosixPath(place).stem) in names]
        unknown = [place for place in left if place not in twice]
        remarks = []
        if twice:
            remarks.append(
                f"not graded, because another file is for the same exercise, or the exercise was not requested: "
                f"{_listed(twice)}"
            )
        if unknown:
            handed_in = self._kernels(submission)
            missing = [self.entries[name].file_name for name in self._wanted() if name not in handed_in]
            expected = f" (expected: {_listed(missing)})" if missing else ""
            remarks.append(f"not graded, because no exercise has that name: {_listed(unknown)}{expected}")
        if submission.unread and not submission.refused:
            reasons = [f"{place} ({reason})" for place, reason in sorted(submission.unread.items())]
            remarks.append(f"not graded, because the file was not read: {_listed(reasons)}")
        return remarks

    def _kept_seed(self) -> int:
        """Return the stored seed, or store a new one, so that a resumed run draws the same inputs."""
        path = self.out / "seed.json"
        try:
            return int(json.loads(path.read_text())["seed"])
        except FileNotFoundError:
            seed = secrets.randbits(48)
            write_file(path, json.dumps({"seed": seed}) + "\n")
            return seed
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise GraderError(f"{path} cannot be read: {error}", "Delete seed.json to draw a new seed.") from error


def _without_copy(stem: str) -> str:
    """Remove the suffix that browsers add to a second download: " (1)" or "-1"."""
    return re.sub(r"( ?\(\d+\)|-\d+)$", "", stem).lower()


def _archives(path: PurePosixPath) -> int:
    """Return the number of archives that a file of a submission is nested in."""
    return sum(part.lower().endswith(".zip") for part in path.parts[:-1])


def _listed(places: list[str]) -> str:
    """Return the first three paths as text without control characters, and the number of the others."""
    shown = ", ".join(cells.printable(place) for place in places[:3])
    return f"{shown} and {len(places) - 3} more" if len(places) > 3 else shown


def _together(several: Iterable[Graded]) -> Graded:
    """Combine several results into one."""
    whole = Graded()
    for graded in several:
        whole.verdicts += graded.verdicts
        whole.incidents += graded.incidents
    return whole
