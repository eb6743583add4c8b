"""Runs unmodified public CUDA programs on the simulated GPU and compares their outcomes with a record.

``python -m tests.execution.programs.public FOLDER [--fetch] [--only TEXT] [--seconds 15] [--workers N] [--again]
[--record]``

The record, lessons/bring_your_own_kernel/public.json, lists repositories with a commit each, and the files and
arguments of each program. FOLDER contains clones of the repositories, ``OWNER+NAME`` or ``OWNER/NAME``, bare or not.
``--fetch`` clones missing ones from GitHub. This repository contains no code of theirs.

Each commit is unpacked into a scratch folder. Each program is compiled and run like ``grader run --jail`` does, with
all checks and one worker, in a separate process. That process can read the program's repository, and can write only to
a copy of the program's folder. Each outcome is appended to FOLDER/results.jsonl at once. The run after an
interruption skips the programs in that file, unless ``--again`` is given. ``--record`` updates the record.

An entry without ``include`` finds the headers of its repository, the nearest first, and those of NVIDIA's samples. If
functions are missing, the other files of its folder are added, and OpenMP for ``omp_`` functions.

An entry with ``make`` is built with the unmodified makefile of its folder, in a jail, with ``grader nvcc`` in place of
nvcc. ``before`` is a shell command that runs first, ``program`` is the file that the makefile builds, and ``inputs``
are files that tests/execution/programs/inputs.py generates. A file of kernels without a main function is only compiled.
An entry may name a launcher, a file in the folder launchers/ next to this file. The launcher has a main function: it
includes the program's file, launches its kernel, and compares the result with the CPU's.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import re
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from grader.execution.jail.compiling import run_in
from grader.execution.jail.running import Jail, bubblewrap
from grader.execution.jail.staging import scratch_folder
from grader.execution.programs.build import Options, build_program
from grader.execution.programs.execute import Outcome, execute
from grader.execution.programs.files import language_of, unit
from grader.execution.programs.results import ending
from grader.frontend.toolchain.process import stop_all
from grader.setup import shipped
from grader.setup.errors import GraderError
from grader.verdict import Finding
from grader.verdict.wording.findings import message
from tests.execution.programs import inputs

RECORD = Path(__file__).parents[3] / "lessons" / "bring_your_own_kernel" / "public.json"
LAUNCHERS = Path(__file__).parent / "launchers"
SAMPLES = "NVIDIA/cuda-samples"
"""The repository whose folder Common has the headers helper_*.h, which CUDA toolkits up to 11.5 installed."""
GITHUB = "https://github.com"
Entry = dict[str, Any]
Item, Result = TypeVar("Item"), TypeVar("Result")

OUTCOMES = {
    "right": "the program checked its own result and reported success",
    "right with a launcher": "the launcher compared the result with the CPU",
    "ended well": "exit status 0, without a recognized statement about the result",
    "findings": "the checks reported findings",
    "over the limit": "not finished after --seconds",
    "stops by itself": "requires arguments, a file or a second GPU",
    "wrong": "the program reports a wrong result, and the checks found nothing",
    "accepted": "a file of kernels without main, compiled only",
    "refused": "did not compile or link, or uses a feature that is not simulated",
    "broken": "the grader itself failed",
}
"""The possible outcomes and their meanings, in the order of the tables."""

CLASSES = {
    "clean": "ran to its end or compiled, without findings",
    "true findings": "a reader of the program's source found the finding right (`why` in the record)",
    "findings not read": "nobody has compared the finding with the program's source",
    "false findings": "the source shows that the finding is wrong",
    "too large": "not finished at the time limit, or needs more memory than the simulated device has",
    "needs input": "stops by itself without arguments, a file or a second GPU",
    "wrong": "reports a wrong result of its own",
    "needs a library": "a header or function of a library is missing",
    "nvcc refuses": "nvcc 13.0 does not compile it either",
    "refused": "uses a feature that is not simulated",
    "broken": "the grader itself failed",
}
"""The classes of the summary and their meanings."""

_LIBRARY = (
    r"the simulator does not have |No such file or directory|used but not defined: .*\b(glut|gl[A-Z]|png_|omp_)|"
    r"used but defined nowhere|cudaGraphics"
)
_RIGHT = (
    r"\bPASS(ED)?\b|\bSUCCESS(FUL(LY)?)?\b|\bcorrect\b|\bverified\b|\bno errors?\b|\bmatch(es)?\b|Test "
    r"OK|Outputs .*: 0$"
)
_WRONG = (
    r"\bFAIL(S|ED|URE)?\b|\bincorrect\b|\bmismatch|do(es)? ?n[o']t match|Outputs .*: [1-9]|result[s]? (is|are) wrong"
)
_LARGEST_OUTPUT = 1 << 20
_MAKE_SECONDS = 600


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.execution.programs.public", description=__doc__)
    parser.add_argument("folder", type=Path, help="folder that contains the clones")
    parser.add_argument("--fetch", action="store_true", help="clone missing repositories from GitHub into it")
    parser.add_argument("--only", default="", metavar="TEXT", help="only programs with this text in REPOSITORY/PATH")
    parser.add_argument("--seconds", type=float, default=15, help="time limit for each program")
    parser.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)), help="parallel programs")
    parser.add_argument("--again", action="store_true", help="also run programs with results in FOLDER/results.jsonl")
    parser.add_argument("--record", action="store_true", help="write the outcomes to the record")
    parser.add_argument("--results", type=Path, help="results file to use instead of FOLDER/results.jsonl")
    asked = parser.parse_args(arguments)
    return guarded("public", lambda: _run(asked))


def guarded(command: str, run: Callable[[], int]) -> int:
    """Return the exit status of a command that can be continued. SIGTERM, like Ctrl-C, cleans up."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        return run()
    except GraderError as problem:
        print(f"{command}: {problem}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"{command}: interrupted; run the same command to continue", file=sys.stderr)
        return 130


def _run(asked: argparse.Namespace) -> int:
    record = json.loads(RECORD.read_text(encoding="utf-8"))
    entries = [one for one in record["programs"] if asked.only in name(one)]
    if not entries:
        raise GraderError(f"the record has no program with {asked.only!r} in its name")
    kept = asked.results or asked.folder / "results.jsonl"
    commits = record["commits"]
    done = {} if asked.again else _done(kept, commits)
    waiting = [one for one in entries if name(one) not in done]
    with kept.open("a", encoding="utf-8") as log:
        for repository in dict.fromkeys(one["repository"] for one in waiting):
            clone = find_clone(asked.folder, repository, commits[repository], asked.fetch)
            mine = [one for one in waiting if one["repository"] == repository]
            with unpacked(clone, commits[repository]) as tree:
                if SAMPLES in commits and repository != SAMPLES:
                    samples = find_clone(asked.folder, SAMPLES, commits[SAMPLES], asked.fetch)
                    unpack(samples, commits[SAMPLES], tree, ["Common"])
                work = functools.partial(try_program, tree=tree, seconds=asked.seconds)
                for one, became in in_parallel(work, mine, asked.workers):
                    done[name(one)] = became
                    print(
                        json.dumps({"commit": commits[repository], "name": name(one), **became}), file=log, flush=True
                    )
                    print(
                        f"{'  ' if became['outcome'] == one.get('outcome') else '! '}{name(one)}: {became['outcome']}",
                        flush=True,
                    )
    differing = compare(entries, done)
    if asked.record:
        write_record(record, done)
    return int(bool(differing) and not asked.record)


def name(entry: Entry) -> str:
    """Return the name of the program in the record and in tables."""
    program = f":{entry['program']}" if "program" in entry else ""
    return " ".join(filter(None, [f"{entry['repository']}/{entry['path']}{program}", entry.get("arguments")]))


def _done(kept: Path, commits: dict[str, str]) -> dict[str, Entry]:
    """Return the results of earlier runs of the same commits, without a truncated last line."""
    done: dict[str, Entry] = {}
    for line in kept.read_text(encoding="utf-8").splitlines() if kept.exists() else []:
        try:
            became = json.loads(line)
            if became.pop("commit") in commits.values():
                done[became.pop("name")] = became
        except (ValueError, KeyError):
            continue
    return done


# -- repositories --


def git(*arguments: str, say: str) -> str:
    """Return git's output. If git fails, raise an error whose message begins with ``say``."""
    environment = {**os.environ, "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
    try:
        done = subprocess.run(["git", *arguments], capture_output=True, text=True, env=environment, check=False)
    except OSError as problem:
        raise GraderError(f"git cannot be started: {problem.strerror}", "Install it.") from None
    if done.returncode != 0:
        raise GraderError(f"{say}: {(done.stderr.strip().splitlines() or ['git gave no reason'])[-1]}")
    return done.stdout


def find_clone(folder: Path, repository: str, commit: str, fetch: bool) -> Path:
    """Return the clone that contains a commit; with ``fetch``, fetch only that commit if no clone has it."""
    flat = folder / repository.replace("/", "+")
    for place in (flat, flat / "repo", folder / repository):
        if place.is_dir() and _has(place, commit):
            return place
    if not fetch:
        raise GraderError(
            f"{folder} has no clone of {repository} with commit {commit}",
            "Add --fetch, or clone the repository into that folder.",
        )
    git("init", "--quiet", "--bare", str(flat), say=f"{flat} cannot be made")
    source = f"{GITHUB}/{repository}"
    git("-C", str(flat), "fetch", "--quiet", "--depth=1", source, commit, say=f"{source} cannot be fetched")
    return flat


def _has(place: Path, commit: str) -> bool:
    # A folder that is no repository may lie inside another repository, so check that the commit exists.
    done = subprocess.run(
        ["git", "-C", str(place), "cat-file", "-e", f"{commit}^{{commit}}"], stderr=subprocess.DEVNULL
    )
    return done.returncode == 0


@contextmanager
def unpacked(clone: Path, commit: str) -> Iterator[Path]:
    """Unpack the files of a commit into a folder that the jail's user can read. The clone stays unchanged."""
    listed = git("-C", str(clone), "ls-tree", "-r", commit, say=f"{clone} cannot be read")
    files = [(line.split()[2], line.partition("\t")[2]) for line in listed.splitlines()]
    check = ["git", "-C", str(clone), "cat-file", "--batch-check"]
    wanted = "\n".join(dict(files))
    looked = subprocess.run(check, input=wanted, capture_output=True, text=True, check=False).stdout
    lacking = {line.split()[0] for line in looked.splitlines() if line.endswith(" missing")}
    with tempfile.TemporaryDirectory(prefix="grader-public-") as scratch:
        os.chmod(scratch, 0o755)
        without = [f":(exclude,literal){path}" for blob, path in files if blob in lacking]
        unpack(clone, commit, Path(scratch), [".", *without])
        yield Path(scratch)


def unpack(clone: Path, commit: str, folder: Path, paths: list[str]) -> None:
    """Unpack some paths of a commit into a folder. Files that exist there are kept."""
    archive = ["git", "-C", str(clone), "archive", commit, "--", *paths]
    with subprocess.Popen(archive, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as packing:
        tar = ["tar", "-x", "--skip-old-files", "--no-same-owner", "--mode=u+rwX,go+rX", "-C", str(folder)]
        status = subprocess.run(tar, stdin=packing.stdout, check=False).returncode
    if packing.returncode or status:
        raise GraderError(f"commit {commit} of {clone} cannot be unpacked")


# -- programs --


def limit_resources() -> None:
    """Limit memory and file size, and disable core dumps, for this process and its children."""
    for what, most in ((resource.RLIMIT_AS, 24 << 30), (resource.RLIMIT_FSIZE, 1 << 30), (resource.RLIMIT_CORE, 0)):
        hard = resource.getrlimit(what)[1]
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(what, (most, hard))


def in_parallel(work: Callable[[Item], Result], items: list[Item], workers: int) -> Iterator[tuple[Item, Result]]:
    """Yield each item with its result, as soon as it is known. An interruption ends all compilers."""
    with ThreadPoolExecutor(workers) as pool:
        try:
            started = {pool.submit(work, item): item for item in items}
            for ended in as_completed(started):
                yield started[ended], ended.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            stop_all()
            raise


def home(entry: Entry) -> str:
    """Return the folder of a program: its path, or the folder that contains its file."""
    path: str = entry["path"]
    if "make" in entry:
        return path
    return path if language_of(Path(path)) is None and not path.endswith(".cuh") else os.path.dirname(path) or "."


def try_program(entry: Entry, tree: Path, seconds: float) -> Entry:
    """Run a program. Return its outcome with the findings or the reason why it was refused."""
    folder = scratch_folder()
    try:
        place = tree / home(entry)
        shutil.copytree(place, folder, symlinks=True, dirs_exist_ok=True)
        for name in entry.get("inputs", []):
            inputs.write(name, tree)
        try:
            program = _made(entry, tree, folder) if "make" in entry else _built(entry, tree)
        except GraderError as problem:
            said = problem.message.replace(f"{tree}/", "").splitlines()
            first = said[0] if len(said) == 1 or not said[0].endswith("program:") else said[1]
            if problem.message == "the program has no main":
                return {"outcome": "accepted"}
            return {"outcome": "refused", "said": [first[:220]]}
        return _ran(entry, tree, folder, program, seconds)
    except Exception as problem:  # an error of the grader must not stop the other programs
        return {"outcome": "broken", "said": [f"{type(problem).__name__}: {problem}".replace(f"{tree}/", "")[:220]]}
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@functools.cache
def _cache_of_makefiles() -> Path:
    """Return a build cache for makefiles, which may write to it. The first makefile builds the simulator there."""
    folder = scratch_folder()
    folder.chmod(0o777)
    return folder


def _made(entry: Entry, tree: Path, folder: Path) -> Path:
    """Build the program with the unmodified makefile of its folder, in which nvcc is ``grader nvcc``.

    The build runs in a jail without a network. It can read the system, the course and the repository. It can write to
    the copy of the program's folder, to the build cache and to /tmp.
    """
    place = tree / home(entry)
    subprocess.run(["chmod", "-R", "a+rwX", str(folder)], check=True)
    cuda = f'CUDA="$({shlex.quote(sys.executable)} -m grader nvcc --toolkit)" && PATH="$CUDA/bin:$PATH"'
    script = f'{cuda} && {entry.get("before", "true")} && make CUDA_DIR="$CUDA" {entry["make"]}'
    cache = _cache_of_makefiles()
    settings = {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "GRADER_CACHE": str(cache)}
    settings |= {"PYTHONPATH": str(shipped.COURSE), "HOME": "/tmp", "LC_ALL": "C.UTF-8"}
    argv = [*bubblewrap(settings), "--ro-bind", "/", "/", "--proc", "/proc"]
    argv += ["--dev", "/dev", "--tmpfs", "/tmp", "--tmpfs", str(Path.home())]
    environment = Path(sys.prefix).resolve()  # bwrap mounts nothing on a link, and .venv may be one
    for path in dict.fromkeys((shipped.COURSE, environment, Path(sys.base_prefix), tree)):
        argv += ["--ro-bind", str(path), str(path)]
    argv += ["--bind", str(cache), str(cache), "--bind", str(folder), str(place), "--chdir", str(place)]
    argv += ["--", "sh", "-c", script]
    try:
        done = subprocess.run(
            argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=_MAKE_SECONDS
        )
    except subprocess.TimeoutExpired:
        raise GraderError(f"make did not end within {_MAKE_SECONDS} s") from None
    if done.returncode != 0:
        said = [line for line in done.stderr.splitlines() if re.search("error|No rule", line)]
        raise GraderError(said[0] if said else f"make ended with status {done.returncode}")
    return folder / entry["program"]


def _built(entry: Entry, tree: Path) -> Path:
    place, folder = tree / entry["path"], tree / home(entry)
    files = [tree / file for file in entry.get("files", [])]
    include = [folder, *(tree / path for path in entry.get("include", [])), tree]
    if "launcher" in entry:
        files = [LAUNCHERS / entry["launcher"], *files]
        include.append(LAUNCHERS)
    elif "include" not in entry:
        include += [*header_folders(folder, tree), tree / "Common"]
    sources = sorted(path for path in folder.iterdir() if language_of(path) and path.suffix != ".cuh")
    others = []
    if not files and place == folder:
        files = sources
    elif not files:
        files, others = [place], [path for path in sources if path != place and not _defines_main(path)]
    defines = tuple(f"-D{define}" for define in entry.get("define", []))

    flags: tuple[str, ...] = ()
    while True:
        try:
            options = Options(host_flags=flags, run=run_in(Jail("bwrap")))
            return build_program([unit(file, tuple(include), defines) for file in files], options)
        except GraderError as problem:
            if "used but not defined: " not in problem.message:
                raise
            if "omp_" in problem.message and not flags:
                flags = ("-fopenmp",)
            elif others:
                files, others = [*files, *others], []
            else:
                raise


def _defines_main(path: Path) -> bool:
    return re.search(r"\bmain\s*\(", path.read_text(encoding="utf-8", errors="replace")) is not None


def header_folders(folder: Path, tree: Path) -> list[Path]:
    """Return the folders of the repository that contain headers, nearest first, but at most 20.

    Of folders at the same distance, those that are named after headers come first.
    """
    found = {path.parent for path in tree.rglob("*") if path.suffix in (".h", ".hpp", ".cuh") and path.is_file()}
    named = ("include", "inc", "common", "utils", "util")

    def order(path: Path) -> tuple[int, bool, Path]:
        return len(Path(os.path.relpath(path, folder)).parts), path.name.lower() not in named, path

    return sorted(found - {folder}, key=order)[:20]


def _ran(entry: Entry, tree: Path, folder: Path, program: Path, seconds: float) -> Entry:
    with tempfile.TemporaryFile() as printed:
        outcome = execute(
            program,
            shlex.split(entry.get("arguments", "")),
            timeout=seconds,
            jail="bwrap",
            folders={tree: tree, tree / home(entry): folder},
            output=printed.fileno(),
        )
        printed.seek(max(0, printed.seek(0, os.SEEK_END) - _LARGEST_OUTPUT))
        said = printed.read().decode(errors="replace")
    if outcome.report is None and said.startswith("bwrap: "):
        raise GraderError(f"there is no jail: {said.strip()}")
    return classified(outcome, said, "launcher" in entry)


def classified(outcome: Outcome, printed: str, launched: bool = False) -> Entry:
    """Return the first outcome that applies to a program that ran."""
    findings = outcome.report.findings if outcome.report else []
    if outcome.refused:
        return {"outcome": "refused", "said": [ending(outcome)]}
    if outcome.timed_out is not None:
        return {"outcome": "over the limit"}
    if findings:
        return {"outcome": "findings", "said": [_said(one) for one in findings[:2]]}
    if outcome.status:
        return {"outcome": "stops by itself", "said": [f"ended with status {outcome.status}"]}
    if wrong := re.search(rf"^.*({_WRONG}).*$", printed, re.IGNORECASE | re.MULTILINE):
        return {"outcome": "wrong", "said": [wrong[0].strip()[:220]]}
    if re.search(_RIGHT, printed, re.IGNORECASE | re.MULTILINE):
        return {"outcome": "right with a launcher" if launched else "right"}
    return {"outcome": "ended well"}


def _said(finding: Finding) -> str:
    """Return the finding's message without the parts that differ between runs."""
    return re.sub(r"0x[0-9a-f]{5,}", "somewhere", f"{finding.check}: {message(finding)}")[:220]


# -- the record --


def compare(entries: list[Entry], done: dict[str, Entry]) -> list[Entry]:
    """Print the programs whose outcome differs from the record, with counts, and return them."""
    differing = [one for one in entries if done[name(one)]["outcome"] != one.get("outcome")]
    for one in differing:
        became = done[name(one)]
        print(f"\n{name(one)}\n    recorded: {one.get('outcome', 'nothing')} {' '.join(one.get('said', []))}")
        print(f"    now:      {became['outcome']} {' '.join(became.get('said', []))}")
    counts = Counter(done[name(one)]["outcome"] for one in entries)
    print()
    for outcome, meaning in OUTCOMES.items():
        print(f"{counts[outcome]:6} {outcome}: {meaning}")
    print(f"{len(entries)} programs and files; {len(differing)} differ from the record")
    return differing


def class_of(entry: Entry) -> str:
    """Return the class of a recorded program: its outcome, and what a reader of its source wrote in ``why``."""
    outcome: str = entry["outcome"]
    why, said = entry.get("why", ""), " ".join(entry.get("said", []))
    if outcome in ("right", "right with a launcher", "ended well", "accepted"):
        return "clean"
    if outcome == "findings":
        verdict = re.match("true|false", why)
        return f"{verdict[0]} findings" if verdict else "findings not read"
    if outcome == "refused":
        for name, found in {
            "nvcc refuses": why.startswith("nvcc"),
            "needs a library": re.search(_LIBRARY, said),
            "too large": "MiB that" in said,
        }.items():
            if found:
                return name
    return {"over the limit": "too large", "stops by itself": "needs input"}.get(outcome, outcome)


def summary(programs: list[Entry]) -> dict[str, Any]:
    """Return the number of programs in each class, and the useful ones in percent.

    A program is useful if it is clean or has true findings. ``possible`` leaves out programs that need a library, input
    or more time, and those that nvcc refuses.
    """
    counts = Counter(class_of(one) for one in programs)
    useful = counts["clean"] + counts["true findings"]
    excluded = ("needs a library", "too large", "needs input", "nvcc refuses")
    possible = len(programs) - sum(counts[name] for name in excluded)
    return {
        "programs": len(programs),
        **{name: counts[name] for name in CLASSES if counts[name]},
        "useful, percent of all": round(100 * useful / max(1, len(programs))),
        "useful, percent of possible": round(100 * useful / max(1, possible)),
    }


def write_record(record: dict[str, Any], done: dict[str, Entry]) -> None:
    """Write the record with the new outcomes, sorted, one line for each program."""
    programs = []
    for one in sorted(record["programs"], key=lambda one: (one["repository"], one["path"], name(one))):
        if name(one) in done:
            one = {key: value for key, value in one.items() if key not in ("outcome", "said")} | done[name(one)]
        programs.append(one)
    known = [one for one in programs if "outcome" in one]
    save(RECORD, {**record, "programs": programs, "summary": summary(known)})


def save(path: Path, record: dict[str, Any]) -> None:
    """Write the record as JSON with one line for each row of a list."""
    parts = []
    for key, value in record.items():
        rows = ",\n  ".join(json.dumps(row, ensure_ascii=False) for row in value) if isinstance(value, list) else ""
        parts.append(
            f"{json.dumps(key)}: " + (f"[\n  {rows}\n ]" if rows else json.dumps(value, indent=1, ensure_ascii=False))
        )
    path.write_text("{\n " + ",\n ".join(parts) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    limit_resources()
    sys.exit(main())
