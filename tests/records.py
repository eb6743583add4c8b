"""Find recorded figures that are older than the sources that they depend on.

``python -m tests.records`` lists each stale source of ``lessons/records.toml`` with the command that measures again.
``python -m tests.records --same-code REVISION`` renews digests without a GPU where only names or comments changed, or
kernels for other sizes were added. With nvcc it compiles each stale CUDA file twice: as it was at REVISION, whose
digest must be the recorded one, and as it is now. If the machine code of each kernel is still there, it renews the
digest. It does not compare the host's code: read the change of the launchers first.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from elftools.elf.elffile import ELFFile

from grader.course import course_root
from grader.execution.build.build import NVCC_FLAGS
from grader.judge.timing.grid import read_rows
from grader.judge.timing.sources import FLAGS, digest, digests, recorded_files

KNOWN = Path(__file__).with_name("stale_records.toml")


@dataclass(frozen=True)
class Stale:
    """A source, or nvcc's flags, that changed after its figures were recorded.

    ``part`` is the exercise, if the record has figures of several exercises, as h200.json has. Otherwise it is empty.
    """

    record: str
    part: str
    source: str
    command: str


def stale(root: Path) -> Iterator[Stale]:
    """Yield each source that is not the one in the record, or that the record does not have."""
    known: dict[Path, str] = {}
    for row in recorded_files(root):
        for path in sorted(root.glob(row.file)):
            name = path.relative_to(root).as_posix()
            if path.suffix == ".csv":
                last = read_rows(path)[-1]
                then = dict.fromkeys(row.sources, last.source) | {FLAGS: last.nvcc_flags}
                yield from _differences(name, "", then, digests(root, row.sources, known), row.command)
                continue
            content = json.loads(path.read_text(encoding="utf-8"))
            if "*" not in row.file:
                now = digests(root, row.sources, known)
                yield from _differences(name, "", content.get("sources", {}), now, row.command)
                continue
            for exercise, report in content["exercises"].items():
                sources = tuple(pattern.format(day=path.parent.name, exercise=exercise) for pattern in row.sources)
                command = row.command.format(exercise=exercise)
                now = digests(root, sources, known)
                yield from _differences(name, exercise, report.get("sources", {}), now, command)


def _differences(
    record: str, part: str, then: Mapping[str, str], now: Mapping[str, str], command: str
) -> Iterator[Stale]:
    for source in sorted({*then, *now}):
        if then.get(source) != now.get(source):
            yield Stale(record, part, source, command)


@dataclass(frozen=True)
class KnownStale:
    """An entry of stale_records.toml: figures that are older than their sources, with the reason and the date."""

    record: str
    source: str
    why: str
    since: str

    def covers(self, item: Stale) -> bool:
        """Return True if this entry names the record and the source of a stale figure."""
        return fnmatch.fnmatch(item.record, self.record) and fnmatch.fnmatch(item.source, self.source)


def known_stale(path: Path = KNOWN) -> list[KnownStale]:
    """Return the entries of stale_records.toml."""
    return [KnownStale(**row) for row in tomllib.loads(path.read_text(encoding="utf-8")).get("stale", [])]


def unexplained(found: Iterable[Stale], known: list[KnownStale]) -> list[str]:
    """Return a line for each record with stale figures that no entry covers, and for each entry that covers nothing."""
    found = list(found)
    sources: dict[tuple[str, str, str], list[str]] = {}
    for item in found:
        if not any(entry.covers(item) for entry in known):
            sources.setdefault((item.record, item.part, item.command), []).append(item.source)
    lines = [
        f"{record}{f' ({part})' if part else ''} is older than {_some(changed)}: run `{command}`"
        for (record, part, command), changed in sources.items()
    ]
    lines += [
        f"{KNOWN.name}: {entry.record} is not stale because of {entry.source}: remove the entry"
        for entry in known
        if not any(entry.covers(item) for item in found)
    ]
    return lines


def _some(names: list[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def machine_code(folder: Path, file: str) -> Counter[bytes]:
    """Return the machine code of the functions of a CUDA file below ``folder``, for the architecture that it needs.

    Names of functions are left out, because they contain the names of parameter types, which may be renamed.
    """
    architecture = "sm_100a" if "tcgen05" in (folder / file).read_text(encoding="utf-8") else "sm_90a"
    with tempfile.TemporaryDirectory() as out:
        cubin = Path(out) / "kernel.cubin"
        compiler = ["nvcc", *NVCC_FLAGS.split(), f"-arch={architecture}", "-cubin", "-I", str(folder / "lessons")]
        subprocess.run([*compiler, "-o", str(cubin), str(folder / file)], check=True, capture_output=True)
        with cubin.open("rb") as stream:
            sections = ELFFile(stream).iter_sections()
            return Counter(section.data() for section in sections if section.name.startswith(".text."))


def renew(root: Path, revision: str) -> int:
    """Renew the digests of sources whose machine code is that of ``revision``; return how many were renewed."""
    count = 0
    compared: dict[str, bool] = {}
    with tempfile.TemporaryDirectory() as folder:
        then = Path(folder)
        archive = subprocess.run(["git", "-C", str(root), "archive", revision], check=True, capture_output=True).stdout
        subprocess.run(["tar", "-x", "-C", folder], input=archive, check=True)
        for item in [item for item in stale(root) if item.source.endswith(".cu")]:
            path = root / item.record
            old, new = then / item.source, root / item.source
            if not old.is_file() or not new.is_file():
                continue
            text, was = path.read_bytes(), digest(old, then / "lessons").encode()
            if was not in text:
                continue
            if item.source not in compared:
                compared[item.source] = not machine_code(then, item.source) - machine_code(root, item.source)
                print(f"{item.source}: {'the same code' if compared[item.source] else 'different code'}", flush=True)
            if compared[item.source]:
                path.write_bytes(text.replace(was, digest(new, root / "lessons").encode()))
                count += 1
    return count


def main() -> int:
    """List stale records, or renew the digests of sources whose machine code did not change."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--same-code", metavar="REVISION", help="a commit at which the figures were not stale")
    arguments = parser.parse_args()
    if arguments.same_code:
        print(f"{renew(course_root(), arguments.same_code)} digests renewed")
    lines = unexplained(stale(course_root()), known_stale())
    print("\n".join(lines) or "no record is stale, beyond those that stale_records.toml explains")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
