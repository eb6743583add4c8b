"""The progress file: kept between runs, never lost, and its errors never make a command fail."""

from __future__ import annotations

import json
import multiprocessing
from pathlib import Path

import pytest

from grader.course.learner.progress import ExerciseProgress, Progress, ProgressFile
from grader.setup.errors import GraderError


def test_nothing_is_recorded_at_first(tmp_path: Path) -> None:
    assert ProgressFile(tmp_path).read() == Progress()
    assert Progress().of("day01/x") == ExerciseProgress()


def test_checks_and_hints_are_kept(tmp_path: Path) -> None:
    file = ProgressFile(tmp_path)
    file.record_check("day01/x", passed=False, failed_stage="correct")
    file.record_hint("day01/x", 2)
    file.record_check("day01/x", passed=True)
    kept = ProgressFile(tmp_path).read().of("day01/x")
    assert (kept.checks, kept.passed, kept.hints_shown, kept.last_failed_stage) == (2, True, 2, "")
    assert kept.first_passed


def test_passed_once_stays_passed(tmp_path: Path) -> None:
    file = ProgressFile(tmp_path)
    file.record_check("day01/x", passed=True)
    first = file.read().of("day01/x").first_passed
    file.record_check("day01/x", passed=False, failed_stage="builds")
    kept = file.read().of("day01/x")
    assert kept.passed and kept.first_passed == first and kept.last_failed_stage == "builds"


def test_forget(tmp_path: Path) -> None:
    file = ProgressFile(tmp_path)
    file.record_check("day01/x", passed=True)
    file.record_check("day01/y", passed=True)
    file.forget("day01/x")
    assert list(file.read().exercises) == ["day01/y"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        '{"exercises": 3}',
        '{"exercises": {"a": {"passed": "yes"}}}',
        '{"exercises": {"a": 1}}',
        "\x00\xff",
    ],
)
def test_a_broken_file_is_set_aside(tmp_path: Path, text: str) -> None:
    file = ProgressFile(tmp_path)
    file.folder.mkdir()
    file.path.write_text(text, encoding="latin-1")
    progress = file.read()
    assert progress.exercises == {} and "progress.broken-" in progress.set_aside
    (aside,) = file.folder.glob("progress.broken-*.json")
    assert aside.read_text(encoding="latin-1") == text
    file.record_check("day01/x", passed=True)
    assert file.read().of("day01/x").passed


def test_fields_of_a_newer_version_are_dropped(tmp_path: Path) -> None:
    file = ProgressFile(tmp_path)
    file.folder.mkdir()
    file.path.write_text(json.dumps({"version": 9, "exercises": {"a": {"passed": True, "color": "blue"}}}))
    assert file.read().of("a").passed


def test_a_folder_that_cannot_be_written_is_one_message(tmp_path: Path) -> None:
    (tmp_path / ".grader").write_text("a file where the folder should be")
    with pytest.raises(GraderError, match="cannot save your progress"):
        ProgressFile(tmp_path).record_check("day01/x", passed=True)


def _record(root: Path, name: str) -> None:
    for _ in range(10):
        ProgressFile(root).record_check(name, passed=False)


def test_two_graders_at_once_lose_nothing(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_record, args=(tmp_path, name)) for name in ("a", "b")]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    progress = ProgressFile(tmp_path).read()
    assert (progress.of("a").checks, progress.of("b").checks) == (10, 10)
    assert not list((tmp_path / ".grader").glob("*.tmp"))
