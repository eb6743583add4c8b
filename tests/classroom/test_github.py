"""The GitHub workflow: valid YAML that names existing files and requests minimal permissions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from grader.classroom.exports import github
from grader.cli.app import run
from grader.course import Course


def workflow(course: Course, classroom: bool) -> dict[str, Any]:
    """Return the parsed workflow. PyYAML reads YAML 1.1, where the key "on" is true; GitHub reads YAML 1.2."""
    data = yaml.safe_load(github.workflow([course.find("twice")], classroom))
    assert data[True] == ["push", "workflow_dispatch"]
    return data


def test_actions(course: Course) -> None:
    data = workflow(course, False)
    assert data["permissions"] == {"contents": "read"}
    steps = data["jobs"]["check"]["steps"]
    check = next(step for step in steps if step.get("id") == "day01_start_twice")
    assert check["run"].startswith(".venv/bin/grader check day01_start/twice --junit reports/day01_start_twice.xml")
    upload = next(step for step in steps if "upload-artifact" in step.get("uses", ""))
    assert upload["with"]["path"] == "reports" and upload["if"] == check["if"] == "${{ !cancelled() }}"
    for step in steps:
        assert ("run" in step) != ("uses" in step)


def test_classroom(course: Course) -> None:
    data = workflow(course, True)
    job = data["jobs"]["check"]
    assert job["if"] == "github.actor != 'github-classroom[bot]'"
    assert data["permissions"] == {"contents": "read", "checks": "write", "actions": "read"}
    check = next(step for step in job["steps"] if step.get("id") == "day01_start_twice")
    assert check["uses"] == "classroom-resources/autograding-command-grader@v1"
    assert check["with"]["max-score"] == 10 and "grader check day01_start/twice" in check["with"]["command"]
    reporter = job["steps"][-1]
    assert reporter["uses"] == "classroom-resources/autograding-grading-reporter@v1"
    assert reporter["with"]["runners"] == "day01_start_twice"
    assert reporter["env"] == {"DAY01_START_TWICE_RESULTS": "${{ steps.day01_start_twice.outputs.result }}"}


def test_titles_are_escaped(course: Course) -> None:
    manifest = course.root / "exercises/course.toml"
    manifest.write_text(manifest.read_text().replace('"Twice"', "'on: \"yes\" # $x'"))
    data = workflow(Course(course.root), False)
    assert 'on: "yes" # $x' in [step.get("name") for step in data["jobs"]["check"]["steps"]]


def test_the_command_writes_the_workflow_to_githubs_folder(course: Course, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["export", "github", "-e", "twice"]) == 2 and "has no Makefile" in capsys.readouterr().err
    (course.root / "Makefile").touch()
    assert run(["export", "github", "-e", "twice"]) == 0
    assert yaml.safe_load(Path(".github/workflows/classroom.yml").read_text())["jobs"]
    assert run(["export", "github"]) == 2 and "no exercise is named" in capsys.readouterr().err
