"""GitHub Actions and GitHub Classroom: a workflow that checks the exercises at each push and keeps the reports.

For Classroom the workflow awards points by GitHub's own actions: one step of
``classroom-resources/autograding-command-grader`` for each exercise (inputs test-name, command, timeout in minutes,
max-score; a command with exit code 0 has passed), then ``classroom-resources/autograding-grading-reporter`` with the
list of their ids and each result in ``<ID>_RESULTS``. These follow GitHub's examples (docs.github.com, "Use
autograding"; the actions' README and action.yml). Students can change results in their own repository: ``grader grade``
grades again for the record.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from grader.course import Entry
from grader.setup.files import write_file

PLACE = Path(".github/workflows/classroom.yml")
MINUTES = 10
"""The time limit of one exercise."""

_HEAD = """# Made by `grader export github`. Checks the exercises below at each push.
name: {name}
on: [push, workflow_dispatch]
permissions:
{permissions}
jobs:
  check:
    runs-on: ubuntu-latest
    timeout-minutes: {minutes}
{condition}    env:
      GRADER_CHECK_NVCC: "off"
    steps:
      - uses: actions/checkout@v4
      - uses: actions/setup-python@v5
        with:
          python-version: "3.12"
      - name: Install a compiler and the jail
        run: sudo apt-get update && sudo apt-get install -y --no-install-recommends g++ make bubblewrap
      - name: Set the course up
        run: make TORCH=cpu PYTHON=python setup && mkdir -p reports
"""

_PLAIN_STEP = """      - name: {title}
        id: {id}
        if: ${{{{ !cancelled() }}}}
        timeout-minutes: {minutes}
        run: {command}
"""

_CLASSROOM_STEP = """      - name: {title}
        id: {id}
        uses: classroom-resources/autograding-command-grader@v1
        with:
          test-name: {title}
          command: {command}
          timeout: {minutes}
          max-score: {points}
"""

_UPLOAD = """      - name: Keep the reports
        if: ${{ !cancelled() }}
        uses: actions/upload-artifact@v4
        with:
          name: reports
          path: reports
"""


def export(entries: Sequence[Entry], target: Path, classroom: bool = False) -> None:
    """Write the workflow."""
    write_file(target, workflow(entries, classroom).encode())


def workflow(entries: Sequence[Entry], classroom: bool) -> str:
    """Return the workflow's text."""
    rights = ["contents: read", *(["checks: write", "actions: read"] if classroom else [])]
    text = _HEAD.format(
        name="Autograding Tests" if classroom else "Check the exercises",
        permissions="\n".join(f"  {right}" for right in rights),
        minutes=30 + MINUTES * len(entries),
        condition="    if: github.actor != 'github-classroom[bot]'\n" if classroom else "",
    )
    for entry in entries:
        report = f"reports/{_id(entry)}"
        command = f".venv/bin/grader check {entry.name} --junit {report}.xml --html {report}.html --json {report}.json"
        step = _CLASSROOM_STEP if classroom else _PLAIN_STEP
        text += step.format(
            title=_quoted(entry.title or entry.name),
            id=_id(entry),
            command=_quoted(command),
            minutes=MINUTES,
            points=entry.points,
        )
    text += _UPLOAD
    if classroom:
        text += "      - name: Report the points\n"
        text += "        uses: classroom-resources/autograding-grading-reporter@v1\n        env:\n"
        for entry in entries:
            text += f"          {_id(entry).upper()}_RESULTS: ${{{{ steps.{_id(entry)}.outputs.result }}}}\n"
        text += f"        with:\n          runners: {','.join(map(_id, entries))}\n"
    return text


def _id(entry: Entry) -> str:
    """Return a step's id: letters, digits, - and _ (GitHub's "Workflow syntax"), valid as a variable name."""
    return entry.name.replace("/", "-").replace("-", "_")


def _quoted(text: str) -> str:
    """Quote a text for YAML, as JSON: every JSON string is valid YAML."""
    return json.dumps(text, ensure_ascii=False)
