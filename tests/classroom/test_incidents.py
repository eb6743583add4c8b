"""A failure caused by one student's submission affects only that student."""

from __future__ import annotations

import csv
import json
import os
import re
import signal
import socket
import subprocess
import unicodedata
from pathlib import Path

import pytest

from grader.classroom import jobs, pages, records, session, similar, submissions, worker
from grader.classroom.incidents import LOG, Incident, note
from grader.classroom.jobs import Job
from grader.classroom.submissions import find_submissions
from grader.classroom.worker import Graded
from grader.cli.app import run
from grader.course import Course
from grader.setup.errors import GraderError
from grader.verdict import Verdict
from tests.classroom.conftest import KERNEL
from tests.classroom.test_grade import grades

grade_one = worker.grade


def fail_for_bob(job: Job) -> Graded:
    """Replace the worker's function: it raises an unexpected exception for bob."""
    if b"// bob" in job.content:
        raise RecursionError("secret of the instructor")
    return grade_one(job)


def end_for_bob(job: Job) -> Graded:
    """Replace the worker's function: bob's job kills the process every time."""
    if b"// bob" in job.content:
        os.kill(os.getpid(), signal.SIGKILL)
    return grade_one(job)


def end() -> None:
    """Replace the start function of the worker processes by one that kills its process."""
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.fixture
def arguments(course: Course, hand_in, tmp_path: Path) -> list[str]:
    """Return the arguments of a command that grades ann, bob and eve."""
    for student in ("ann", "bob", "eve"):
        folder = hand_in(student, f"{KERNEL}// {student}\n")
    return ["grade", str(folder), "--out", str(tmp_path / "out"), "--workers", "1"]


def references(log: str) -> list[str]:
    return re.findall(r"^reference ([0-9a-f]{8}), .*, student 'bob', ", log, re.MULTILINE)


@pytest.mark.parametrize(
    ("fault", "logged"), [(fail_for_bob, "RecursionError: secret"), (end_for_bob, "ended by signal 9")]
)
def test_a_fault_is_one_students_error(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys, fault, logged: str
) -> None:
    out = tmp_path / "out"
    monkeypatch.setattr(worker, "grade", fault)
    assert run(arguments) == 0, capsys.readouterr()
    assert grades(out) == {"ann": "10", "bob": "0", "eve": "10"}
    said = capsys.readouterr().err
    assert "1 submission could not be graded" in said and "errors.log" in said
    log = (out / "errors.log").read_text()
    (reference,) = references(log)
    assert logged in log
    assert reference in (out / "grades.csv").read_text()
    for name in ("feedback.txt", "junit.xml"):
        told = (out / "bob" / name).read_text()
        assert reference in told and "the submission is not at fault" in told
        assert "Traceback" not in told and "secret" not in told

    monkeypatch.setattr(worker, "grade", grade_one)
    kept = {name: (out / name / "results.json").stat().st_mtime_ns for name in ("ann", "eve")}
    assert run(arguments) == 0
    assert grades(out) == {"ann": "10", "bob": "10", "eve": "10"}
    assert kept == {name: (out / name / "results.json").stat().st_mtime_ns for name in kept}


def test_the_class_stops_if_no_process_works(arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    monkeypatch.setattr(worker, "begin", end)
    assert run(arguments) == 2
    assert "the same command to continue" in capsys.readouterr().err


def grade_alone(course: Course, name: str, kernel: bytes) -> tuple[Verdict, list[Incident]]:
    graded = worker.grade(jobs.plan(course.find(name), kernel, 1, [], course.root))
    return graded.verdicts[0], graded.incidents


def test_a_fault_in_one_exercise_leaves_the_others(course: Course, tmp_path: Path, monkeypatch) -> None:
    """An input distribution of the task raises an exception in the worker process."""
    tasks = course.root / "exercises/day01_start/tasks.py"
    text = tasks.read_text()
    other = text[text.index("twice =") :].replace("twice", "broken").replace("normal(mean=1.0)", "fails")
    tasks.write_text(f"{text}\ndef fails(*arguments): raise ZeroDivisionError('mine')\n{other}")
    (tasks.parent / "broken.cu").touch()
    listed = (course.root / "exercises/course.toml").read_text()
    entry = '\n[[day.exercise]]\nname = "broken"\ntitle = "Broken"\nkind = "implement"\npoints = 10\n'
    (course.root / "exercises/course.toml").write_text(listed + entry)
    kernel = b'extern "C" void broken(const float* x, float* out, int n, cudaStream_t stream) {}'
    course = Course(course.root)
    broken, (incident,) = grade_alone(course, "broken", kernel)
    assert "ZeroDivisionError: mine" in incident.details and incident.what == "day01_start/broken"
    twice, _ = grade_alone(course, "twice", b"not C++")
    assert broken.exit_code == 2 and incident.reference in broken.stages[0].message
    assert twice.exit_code == 1, "the other exercise must be graded"


def test_a_fault_while_a_report_is_read(course: Course, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    """An error of the grader must not cost points: the kernel is correct, but reading the simulator's report fails."""

    def fails(self: object) -> None:
        raise IndexError("mine")

    monkeypatch.setattr("grader.simulator.finding_reader.FindingReader.read", fails)
    file = course.root / "twice.cu"
    file.write_text(KERNEL)
    assert run(["check", "twice", "--file", str(file)]) == 2
    said = capsys.readouterr().err
    assert "a bug of the grader, not of your kernel" in said and "IndexError: mine (test_incidents.py:" in said
    verdict, (incident,) = grade_alone(course, "twice", KERNEL.encode())
    assert verdict.exit_code == 2 and incident.reference in verdict.stages[0].message
    assert "IndexError: mine" in incident.details


def test_a_fault_while_results_are_written(arguments: list[str], tmp_path: Path, monkeypatch, capsys) -> None:
    write_student = session.records.write_student

    def fail_for_bob(out, submission, result) -> None:
        if submission.student == "bob" and result.verdicts[0].passed:
            raise UnicodeError("mine")
        write_student(out, submission, result)

    monkeypatch.setattr(session.records, "write_student", fail_for_bob)
    assert run(arguments) == 0, capsys.readouterr()
    assert grades(tmp_path / "out") == {"ann": "10", "bob": "0", "eve": "10"}
    assert "UnicodeError: mine" in (tmp_path / "out/errors.log").read_text()


def test_a_fault_while_feedback_is_written(arguments: list[str], tmp_path: Path, monkeypatch, capsys) -> None:
    """Write the feedback of the other students, and report the fault to the instructor. A full disk ends the run."""

    def fail_for_bob(student, book) -> str:
        if student.name == "bob":
            raise error
        return ""

    monkeypatch.setattr(pages, "feedback_text", fail_for_bob)
    error: Exception = UnicodeError("mine")
    assert run(arguments) == 0
    assert "the grader itself failed; see" in capsys.readouterr().err
    assert (tmp_path / "out/eve/feedback.html").exists() and not (tmp_path / "out/bob/feedback.html").exists()
    error = GraderError("cannot write feedback.txt: No space left on device")
    assert run(arguments) == 2
    assert "No space left" in capsys.readouterr().err


def test_a_fault_while_files_are_read_or_compared(arguments: list[str], tmp_path: Path, monkeypatch, capsys) -> None:
    def fail(text: str) -> similar.KGrams:
        raise IndexError("mine")

    read = submissions._from_folder
    monkeypatch.setattr(submissions, "_from_folder", lambda folder: 1 // (folder.name != "bob") and read(folder))
    monkeypatch.setattr(similar, "k_grams", lambda text, language: fail(text) if "2.0f" in text else frozenset())
    assert run(arguments) == 0, capsys.readouterr()
    assert grades(tmp_path / "out") == {"ann": "10", "bob": "0", "eve": "10"}
    log = (tmp_path / "out/errors.log").read_text()
    assert "ZeroDivisionError" in log and log.count("IndexError: mine") == 2 and len(references(log)) == 1
    assert references(log)[0] in (tmp_path / "out/bob/feedback.txt").read_text()
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path / "course")
    assert run(arguments) == 0
    assert grades(tmp_path / "out")["bob"] == "10"


@pytest.fixture
def deep(hand_in, tmp_path: Path):
    """Yield a class whose folder is removed afterwards, because pytest cannot remove such deep folders."""
    yield hand_in("ann")
    subprocess.run(["rm", "-r", "--", tmp_path / "class"], check=True)


def test_folders_that_are_not_submissions(course: Course, deep: Path, tmp_path: Path, capsys) -> None:
    folder = deep
    for name in ("deep", "pipe", "link", "grades.csv", "seed.json", "errors.log", "Ann", "similar.csv"):
        (folder / name).mkdir()
    place = os.open(folder / "deep", os.O_RDONLY)
    for _ in range(1400):  # more than Python's recursive walk supports
        os.mkdir("d", dir_fd=place)
        inner = os.open("d", os.O_RDONLY, dir_fd=place)
        os.close(place)
        place = inner
    os.close(place)
    os.mkfifo(folder / "pipe/twice.cu")
    os.mkfifo(folder / "pipe.zip")
    (folder / "link/twice.cu").symlink_to(course.root / "exercises/day01_start/twice.cu")
    (folder / "grades.csv/twice.cu").write_text((folder / "ann/twice.cu").read_text())
    (folder / "out.zip").symlink_to(folder / "ann")
    out = tmp_path / "out"
    assert run(["grade", str(folder), "--out", str(out), "--workers", "1"]) == 0, capsys.readouterr()
    points = grades(out)
    assert points.pop("ann") == points.pop("grades.csv") == "10" and set(points.values()) == {"0"}
    refused = {
        data["submission"]: data["refused"]
        for data in (json.loads(path.read_text()) for path in out.glob("*/results.json"))
    }
    assert len(refused) == 11
    assert "nested more than 40 deep" in refused["deep"]
    assert refused["pipe"] == "'twice.cu' is neither a file nor a folder"
    assert refused["pipe.zip"] == "'pipe.zip' is neither a file nor a folder"
    assert "is a link" in refused["link"] and "is a link" in refused["out.zip"]


def test_a_device_file_is_refused() -> None:
    with pytest.raises(submissions.Refused, match="neither a file nor a folder"):
        submissions._from_archive(Path("/dev/zero"))


def test_results_of_students_are_in_different_folders(tmp_path: Path) -> None:
    hashed = next(s.folder_name for s in named(tmp_path / "one", ["ann.smith"]))
    names = ["ann.smith", hashed, "Ann", "ANN", "ann", "seed.json", "results.json", "-", "ann.zip", "con.", "_"]
    raw = [os.fsdecode(b"a\xff"), os.fsdecode(b"a\xfe")]
    found = named(tmp_path / "two", names + raw)
    folders = [submission.folder_name for submission in found]
    assert len({folder.casefold() for folder in folders}) == len(names) + 2, folders
    assert "ann" in folders and hashed in folders
    own = re.compile(r"grades\.csv|similar\.csv|seed\.json|errors\.log|\..*")
    assert not any(own.fullmatch(folder) for folder in folders)


def named(folder: Path, names: list[str]) -> list[submissions.Submission]:
    for name in names:
        (folder / name).mkdir(parents=True)
    return find_submissions(folder)


def test_a_folder_an_archive_and_an_archive_of_its_name(tmp_path: Path) -> None:
    (tmp_path / "ann").mkdir()
    for name in ("ann.zip", "ann.zip.zip"):
        (tmp_path / name).write_bytes(b"")
    assert sorted(s.student for s in find_submissions(tmp_path)) == ["ann", "ann.zip", "ann.zip.zip"]


def test_names_and_files_that_only_one_student_has(course: Course, hand_in, tmp_path: Path, capsys) -> None:
    long, escaped, wide, raw = "x" * 255, "a\nb\x1b[2J\u202e", "\uff1d1+1", os.fsdecode(b"r\xff\n")
    for student in ("ann", long, escaped, wide, raw):
        folder = hand_in(student, KERNEL)
    (folder / wide / "\uff0b\n\x1b[31m.cu").write_text("x")
    for student in ("socket", "closed", "broken", "large"):
        folder = hand_in(student, "")
    with socket.socket(socket.AF_UNIX) as left:
        os.chdir(folder / "socket")  # a socket's path has a length limit
        left.bind("left")
    os.chdir(course.root)
    (folder / "broken/twice.cu").write_bytes(b"\0\xff\xfe" + bytes(range(256)) * 40)
    (folder / "large/twice.cu").write_bytes(b" " * (submissions.MOST_KERNEL_BYTES + 1))
    (folder / "closed").chmod(0)
    try:
        out = tmp_path / "out"
        arguments = ["grade", str(folder), "--out", str(out), "--workers", "1"]
        assert run(arguments) == 0, capsys.readouterr()
    finally:
        (folder / "closed").chmod(0o700)
    assert len(list(out.glob("*/results.json"))) == 9
    shown = [(out / "grades.csv").read_text("utf-8-sig"), capsys.readouterr().out]
    shown += [path.read_text() for pattern in ("*/feedback.*", "*/junit.xml", "*.html") for path in out.glob(pattern)]
    for text in shown:
        assert not [c for c in text if unicodedata.category(c) in ("Cc", "Cf", "Cs") and c not in "\n\t\r"]
    with (out / "grades.csv").open(newline="", encoding="utf-8-sig") as file:
        rows = {row["student"]: row for row in csv.DictReader(file)}
    assert [name for name in rows if rows[name]["score"] == "10"] == sorted(
        ["ann", "a?b?[2J?", "r??", long, "'" + wide], key=list(rows).index
    )
    assert "'left' is neither a file nor a folder" in rows["socket"]["note"]
    assert "is larger than 1 MB" in rows["large"]["note"]
    assert not any(path.name == "errors.log" for path in out.iterdir())


@pytest.mark.parametrize(
    "kept",
    [
        "",
        "[",
        "[]",
        "[" * 100_000,
        '{"key": 1}',
        "null",
        '{"verdicts": [{"stages": 3}]}',
        '{"score": 1' + "0" * 5000 + "}",
    ],
    ids=["empty", "cut", "a list", "deep", "other types", "null", "other stages", "a long number"],
)
def test_unreadable_results_count_as_missing(tmp_path: Path, kept: str) -> None:
    submission = submissions.Submission("ann", tmp_path)
    (tmp_path / "ann").mkdir()
    (tmp_path / "ann/results.json").write_text(kept)
    assert records.read_student(tmp_path, submission) is None


def test_the_log_has_names_as_they_are(tmp_path: Path) -> None:
    note(tmp_path, "Zoë Ødegård\u202e", Incident("reading", "details"))
    assert "student 'Zoë Ødegård\\u202e', reading" in (tmp_path / LOG).read_text(encoding="utf-8")
