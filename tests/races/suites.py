"""Measures the checks on suites of labeled CUDA kernels: racy ones that they find, and clean ones that they accuse.

``python -m tests.races.suites FOLDER [--fetch] [--suites FILE] [--suite NAME] [--only TEXT] [--seconds 20]
[--workers N] [--again] [--record]``

FOLDER contains clones of the repositories, ``OWNER+NAME`` or ``OWNER/NAME``, bare or not. ``--fetch`` clones missing
ones from GitHub. FILE is a TOML file with a table ``[[suite]]`` for each suite; its keys are the fields of ``Suite``.
Without ``--suites``, it is suites.toml beside this file, which describes the suites of the record.

Each commit is unpacked into a scratch folder. A file with a main function is compiled and run as it is. For a file of
kernels, a launcher is generated: it passes an array for each pointer and a number for each other parameter. Programs
run as under ``grader run --jail``, with all checks and one worker, first without and then with ``--reverse``. After the
first finding, the other runs of a file are skipped. Each result is appended to FOLDER/suites.jsonl at once. The run
after an interruption skips the files in it, unless ``--again`` is given. ``--record`` writes
lessons/can_i_believe_this/suites.json.
"""

from __future__ import annotations

import argparse
import datetime
import functools
import hashlib
import itertools
import json
import os
import re
import shlex
import shutil
import sys
import tempfile
import tomllib
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from grader.course import course_root
from grader.execution.jail.compiling import run_in
from grader.execution.jail.running import Jail
from grader.execution.jail.staging import scratch_folder
from grader.execution.programs.build import Options, build_program
from grader.execution.programs.execute import Outcome, execute
from grader.execution.programs.files import read_text, unit
from grader.execution.programs.results import ending
from grader.frontend.kernel_definitions import find_kernels
from grader.frontend.tokens import Source
from grader.judge.timing.sources import write_record
from grader.setup.errors import GraderError
from tests.execution.programs.public import find_clone, guarded, in_parallel, limit_resources, unpacked

RECORD = course_root() / "lessons" / "can_i_believe_this" / "suites.json"
SUITES = Path(__file__).with_name("suites.toml")
LAUNCHER = Path(__file__).with_name("launcher.h")
RACY, CLEAN = "racy", "clean"
_DYNAMIC_SHARED_BYTES = 16 << 10
_POSITION = re.compile(r"^\S+:\d+: (error: )?")


@dataclass(frozen=True)
class Suite:
    """A suite of labeled kernels: where its files are, how their labels are read, and how they are launched."""

    name: str
    repository: str
    """The GitHub repository, ``OWNER/NAME``."""
    commit: str
    files: list[str]
    """Patterns of paths, relative to the repository."""
    racy: str
    """A regular expression. A file is racy if it is found in the file's label text, in which ``^`` begins a line."""
    clean: str
    """A regular expression. A file is clean if it is found in the label text, unless ``racy`` is."""
    label: str = ""
    """The label text is a file's path and, below it, its text or that of the file of this name in the same folder."""
    exclude: str = ""
    """A regular expression: paths in which it is found do not belong to the suite."""
    checks: list[str] = field(default_factory=lambda: ["racecheck"])
    """The checks whose findings count."""
    runs: list[str] = field(default_factory=lambda: [""])
    """The arguments of each run. A generated launcher takes the value of numbers and words.

    ``index``: arrays are 0, 1, ... instead of zeros. ``pointers``: classes consist of pointers to arrays.
    """
    same_value_races: bool = False
    """True if the suite counts unordered writes of the same value as races."""
    include: list[str] = field(default_factory=list)
    """Folders of headers, relative to the repository."""
    define: list[str] = field(default_factory=list)
    """Macros, as after ``-D``."""
    grid: str = ""
    """The grid's dimensions for a file of kernels, such as ``8,8``, or a regular expression whose group is them.

    If it is empty, the files are programs.
    """
    block: str = ""
    """The same for the block's dimensions. Blocks of more than 1024 threads are made smaller."""
    macro: str = ""
    """A regular expression whose group is a macro in the text, as after ``-D``."""
    replace: dict[str, str] = field(default_factory=dict)
    """Texts to replace in each file, such as the length of a loop that the simulator cannot finish in time."""
    prelude: str = ""
    """Code before the text of each file."""
    known: dict[str, dict[str, str]] = field(default_factory=dict)
    """For paths of files: ``why`` the result differs from the label, and the true ``label`` if the file's is wrong."""
    published: dict[str, Any] = field(default_factory=dict)
    """Published figures: their ``source``, and how many racy files each tool ``found``, the fewest and the most."""


@dataclass(frozen=True)
class Result:
    """The result of a file: whether the checks reported it, or why it could not be run."""

    path: str
    reported: bool = False
    not_run: str = ""
    said: str = ""
    """The first finding that counts."""


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.races.suites", description=__doc__)
    parser.add_argument("folder", type=Path, help="folder that contains the clones")
    parser.add_argument("--fetch", action="store_true", help="clone missing repositories from GitHub into it")
    parser.add_argument("--suites", type=Path, default=SUITES, metavar="FILE", help="describes the suites, in TOML")
    parser.add_argument("--suite", action="append", metavar="NAME", help="only this suite; may be repeated")
    parser.add_argument("--only", default="", metavar="TEXT", help="only files with this text in their path")
    parser.add_argument("--seconds", type=float, default=20, help="time limit for each run")
    parser.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)), help="parallel programs")
    parser.add_argument("--again", action="store_true", help="also run files with results in FOLDER/suites.jsonl")
    parser.add_argument("--record", action="store_true", help="write the results to the record")
    asked = parser.parse_args(arguments)
    return guarded("suites", lambda: _run(asked))


def _run(asked: argparse.Namespace) -> int:
    suites = read_suites(asked.suites)
    unknown = set(asked.suite or ()) - {suite.name for suite in suites}
    if unknown:
        raise GraderError(f"{asked.suites} has no suite {', '.join(sorted(unknown))}")
    rows = []
    for suite in suites:
        if asked.suite and suite.name not in asked.suite:
            continue
        clone = find_clone(asked.folder, suite.repository, suite.commit, asked.fetch)
        with unpacked(clone, suite.commit) as tree:
            files = files_of(suite, tree)
            labels = {path: label for path, label in labeled(suite, tree, files).items() if asked.only in path}
            kept = asked.folder / "suites.jsonl"
            results = {} if asked.again else _earlier(kept, suite)
            waiting = [path for path in labels if path not in results]
            with kept.open("a", encoding="utf-8") as log:
                work = functools.partial(try_file, suite, tree=tree, seconds=asked.seconds)
                for _, result in in_parallel(work, waiting, asked.workers):
                    results[result.path] = result
                    print(json.dumps({"suite": digest(suite), **vars(result)}), file=log, flush=True)
                    print(f"{_became(result):12} {labels[result.path]:6} {result.path}", flush=True)
        rows.append({**summary(suite, labels, results), "unlabeled": len(files) - len(labels)})
        show(rows[-1])
    if asked.record:
        if asked.only:
            raise GraderError("--record needs whole suites", "Leave --only out.")
        save(rows)
    return 0


def read_suites(path: Path) -> list[Suite]:
    """Return the suites that a TOML file describes."""
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8")).get("suite", [])
    except (OSError, ValueError) as problem:
        raise GraderError(f"{path} cannot be read: {problem}") from None
    known = {one.name for one in fields(Suite)}
    for table in tables:
        if wrong := set(table) - known:
            raise GraderError(f"{path}: a suite has no key {', '.join(sorted(wrong))}")
        if missing := {"name", "repository", "commit", "files", "racy", "clean"} - set(table):
            raise GraderError(f"{path}: a suite needs the key {', '.join(sorted(missing))}")
        for kind in ("racy", "clean", "exclude", "grid", "block", "macro"):
            try:
                re.compile(table.get(kind, ""))
            except re.error as problem:
                raise GraderError(f"{path}: {kind} of {table['name']} is not a regular expression: {problem}") from None
    return [Suite(**table) for table in tables]


def digest(suite: Suite) -> str:
    """Return a digest of what decides the results of a suite's files."""
    decides = {key: value for key, value in vars(suite).items() if key not in ("racy", "clean", "known", "published")}
    text = json.dumps(decides) + LAUNCHER.read_text(encoding="utf-8")
    return f"{suite.name} {hashlib.sha256(text.encode()).hexdigest()[:12]}"


def files_of(suite: Suite, tree: Path) -> list[str]:
    """Return the paths of all files that match the patterns of a suite."""
    found = {path for pattern in suite.files for path in tree.glob(pattern) if path.is_file()}
    return sorted(path.relative_to(tree).as_posix() for path in found)


def labeled(suite: Suite, tree: Path, files: list[str]) -> dict[str, str]:
    """Return the label of each file that has one and is not excluded."""
    labels = {}
    for path in files:
        if suite.exclude and re.search(suite.exclude, path):
            continue
        place = tree / path
        source = place.with_name(suite.label) if suite.label else place
        text = f"{path}\n{read_text(source) if source.is_file() else ''}"
        if re.search(suite.racy, text, re.MULTILINE):
            labels[path] = RACY
        elif re.search(suite.clean, text, re.MULTILINE):
            labels[path] = CLEAN
    if lacking := set(suite.known) - set(labels):
        raise GraderError(f"{suite.name} has no file {min(lacking)} with a label")
    return labels


def _earlier(kept: Path, suite: Suite) -> dict[str, Result]:
    """Return the results of earlier runs of the same suite, without a truncated last line."""
    results: dict[str, Result] = {}
    for line in kept.read_text(encoding="utf-8").splitlines() if kept.exists() else []:
        try:
            row = json.loads(line)
            if row.pop("suite") == digest(suite):
                results[row["path"]] = Result(**row)
        except (ValueError, KeyError, TypeError):
            continue
    return results


# -- programs --


def try_file(suite: Suite, path: str, tree: Path, seconds: float) -> Result:
    """Run a file with each list of arguments, in order and in reverse order, until a finding counts."""
    folder = scratch_folder()
    try:
        shutil.copytree((tree / path).parent, folder, symlinks=True, dirs_exist_ok=True)
        program = _built(suite, tree / path, tree)
        reasons = []
        for arguments, reverse in itertools.product(suite.runs, (False, True)):
            outcome, printed = _ran(suite, program, arguments, tree, tree / path, folder, seconds, reverse)
            for finding in outcome.report.findings if outcome.report else []:
                if finding.check in suite.checks:
                    return Result(path, True, said=f"{finding.kind} at line {finding.line}")
            reasons.append(_why_not_run(outcome, printed))
        return Result(path, not_run=reasons[0] if all(reasons) else "")
    except GraderError as problem:
        said = [line for line in problem.message.replace(f"{tree}/", "").splitlines() if not line.endswith("program:")]
        return Result(path, not_run=said[0][:200])
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _built(suite: Suite, place: Path, tree: Path) -> Path:
    include = (place.parent, *(tree / path for path in suite.include), LAUNCHER.parent)
    text = read_text(place)
    for old, new in suite.replace.items():
        text = text.replace(old, new)
    if suite.replace:
        place.write_text(text, encoding="utf-8")
    defines = tuple(f"-D{one}" for one in (*suite.define, *(re.findall(suite.macro, text) if suite.macro else ())))
    options = Options(run=run_in(Jail("bwrap")))
    if not suite.grid and not suite.prelude:
        return build_program([unit(place, include, defines)], options)
    code = launcher(suite, place, text) if suite.grid else f'{suite.prelude}\n#include "{place}"\n'
    with tempfile.TemporaryDirectory(dir=tree) as scratch:
        file = Path(scratch) / "launcher.cu"
        file.write_text(code, encoding="utf-8")
        return build_program([unit(file, include, defines)], options)


def launcher(suite: Suite, place: Path, text: str) -> str:
    """Return a program that launches each kernel of a file, with the dimensions that the file names."""
    dimensions = []
    for name, pattern in (("grid", suite.grid), ("block", suite.block)):
        found = re.fullmatch(r"([\d,]+)", pattern) or re.search(pattern, text)
        if found is None:
            raise GraderError(f"the file does not name the {name}'s dimensions")
        dimensions.append(f"dim3({found[1]})")
    kernels = [name for name, kinds in find_kernels(Source(text)).items() if not any(one.is_template for one in kinds)]
    if not kernels:
        raise GraderError("the file has no kernel that is not a template")
    shared = _DYNAMIC_SHARED_BYTES if re.search(r"\bextern\b[^;]*\b__shared__\b", text) else 0
    given = ", ".join((*dimensions, "words", str(shared), "true" if "this_grid" in text else "false"))
    calls = "\n".join(f"    launcher::launch(::{name}, {given});" for name in kernels)
    return (
        f'{suite.prelude}\n#include "{place}"\n#include "{LAUNCHER.name}"\nint main(int count, char** arguments) {{\n'
        f"    launcher::Words words(count, arguments);\n{calls}\n}}\n"
    )


def _ran(
    suite: Suite,
    program: Path,
    arguments: str,
    tree: Path,
    place: Path,
    folder: Path,
    seconds: float,
    reverse: bool,
) -> tuple[Outcome, str]:
    with tempfile.TemporaryFile() as output:
        outcome = execute(
            program,
            shlex.split(arguments),
            timeout=seconds,
            jail="bwrap",
            same_value_races=suite.same_value_races,
            reverse=reverse,
            folders={tree: tree, place.parent: folder},
            output=output.fileno(),
        )
        output.seek(0)
        return outcome, output.read(1 << 16).decode(errors="replace")


def _why_not_run(outcome: Outcome, printed: str) -> str:
    """Return why a program did not run its kernels to their ends; empty if it did."""
    if outcome.report is None and printed.startswith("bwrap: "):
        raise GraderError(f"there is no jail: {printed.strip()}")
    if outcome.refused:
        return ending(outcome)[:200]
    if outcome.timed_out is not None:
        return "over the time limit"
    if outcome.report is None or not outcome.report.totals.get("launches", 0):
        return f"launched no kernel, and ended with status {outcome.status}"
    if "the launch failed: " in printed:
        failed = re.search(r"Assertion `(.*)` failed", printed)
        return (f"an assertion failed: {failed[1]}" if failed else printed.strip().splitlines()[-1])[:200]
    return ""


# -- results --


def _became(result: Result) -> str:
    return "not run" if result.not_run else "reported" if result.reported else "silent"


def summary(suite: Suite, labels: dict[str, str], results: dict[str, Result]) -> dict[str, Any]:
    """Return the counts of a suite: by its own labels, and by the corrected ones if some are wrong."""
    true = {path: suite.known.get(path, {}).get("label", label) for path, label in labels.items()}
    differing = []
    for path, label in labels.items():
        result = results[path]
        if true[path] != label or (not result.not_run and result.reported != (label == RACY)):
            why = suite.known.get(path, {}).get("why", "")
            differing.append({"path": path, "label": label, "true": true[path], "result": _became(result), "why": why})
    reasons: dict[str, list[str]] = {}
    for path in labels:
        if results[path].not_run:
            reasons.setdefault(_POSITION.sub("", results[path].not_run), []).append(path)
    return {
        "name": suite.name,
        "repository": suite.repository,
        "commit": suite.commit,
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d"),
        "checks": suite.checks,
        "same-value races": suite.same_value_races,
        "shortened": bool(suite.replace),
        "as labeled": _counts(labels, results),
        "corrected": _counts(true, results),
        "not run": dict(sorted(reasons.items())),
        "differing": differing,
        "published": suite.published,
    }


def _counts(labels: dict[str, str], results: dict[str, Result]) -> dict[str, int]:
    ran = {path: results[path].reported for path in labels if not results[path].not_run}
    return {
        "racy": sum(labels[path] == RACY for path in ran),
        "found": sum(labels[path] == RACY and reported for path, reported in ran.items()),
        "clean": sum(labels[path] == CLEAN for path in ran),
        "accused": sum(labels[path] == CLEAN and reported for path, reported in ran.items()),
    }


def show(row: dict[str, Any]) -> None:
    """Print the counts of a suite, and the files whose results differ from their labels."""
    print(f"\n{row['name']}: {row['repository']} {row['commit'][:12]}")
    for kind in ("as labeled", "corrected"):
        counts = row[kind]
        found, accused = (f"{counts[a]} of {counts[b]}" for a, b in (("found", "racy"), ("accused", "clean")))
        print(f"    {kind:10}  {found} racy found, {accused} clean accused")
    print(f"    excluded or without a label: {row['unlabeled']}")
    for reason, paths in row["not run"].items():
        print(f"    not run: {reason}: {', '.join(paths)}")
    for one in row["differing"]:
        kind = f"wrong label, {one['true']}" if one["true"] != one["label"] else "differs"
        print(f"    {one['path']}: labeled {one['label']}, {one['result']} ({kind}): {one['why'] or 'not read'}")


def save(rows: list[dict[str, Any]]) -> None:
    """Write the record. Suites that did not run now keep their rows."""
    earlier = json.loads(RECORD.read_text(encoding="utf-8"))["suites"] if RECORD.exists() else []
    names = {row["name"] for row in rows}
    both = [*(row for row in earlier if row["name"] not in names), *rows]
    content = {"command": "python -m tests.races.suites FOLDER --fetch --record", "suites": both}
    write_record(RECORD, content, course_root())


if __name__ == "__main__":
    limit_resources()
    sys.exit(main())
