"""Compare the simulator's findings with compute-sanitizer's over the corpus of faulty kernels.

``python -m tests.gpu.compare_findings --out FILE.json [NAME...]`` on a machine with a GPU and the CUDA toolkit. Each
faulty kernel and its correct twin run under memcheck, racecheck, initcheck and synccheck. If names are given, only the
rows of these kernels are replaced in the file. Comments in the corpus' files mark the simulator's findings, which
``tests/simulator/test_corpus.py`` checks.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from grader.course import course_root
from grader.judge.timing.sources import write_record
from tests.gpu.compare_counters import versions
from tests.gpu.counted import replace_rows
from tests.simulator.corpus_kernels import CorpusFile, corpus_files

MAIN = Path(__file__).with_name("corpus_main.cu")
LESSONS = Path(__file__).parents[2] / "lessons"
TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")


def build(item: CorpusFile, clean: bool, folder: Path) -> Path | str:
    """Build the program around one kernel, or return the compiler's message."""
    program = folder / item.path.stem
    source = folder / item.path.name
    source.write_text(item.text())
    command = ["nvcc", "-std=c++17", "-rdc=true", "-lineinfo", "-gencode=arch=compute_90a,code=sm_90a"]
    command += [f'-DCORPUS="{source}"', f"-DCORPUS_COUNT={item.n}", *(["-DCLEAN=1"] if clean else [])]
    command += ["-I", str(LESSONS), "-o", str(program), str(MAIN)]
    done = subprocess.run(command, capture_output=True, text=True)
    said = (done.stdout + done.stderr).replace(f"{folder}/", "").replace(f"{course_root()}/", "")
    return program if done.returncode == 0 else said[:2000]


def watch(program: Path, source: str, tool: str) -> dict[str, Any]:
    """Return one tool's errors in one program, with the lines of the kernel's file that it names."""
    command = ["compute-sanitizer", "--tool", tool, "--print-limit", "1000", str(program)]
    if tool == "memcheck" and program.name == "leak":
        command[3:3] = ["--leak-check", "full"]
    if tool == "initcheck":
        command[3:3] = ["--initcheck-address-space", "all"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=25)
    except subprocess.TimeoutExpired:
        return {"errors": 0, "lines": [], "says": ["did not end within 25 s"]}
    text = done.stdout + done.stderr
    if "unknown option" in text.lower() or "unrecognized option" in text.lower():
        command = [part for part in command if part not in ("--initcheck-address-space", "all")]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        text = done.stdout + done.stderr
    if unsupported := re.search(r"Warning: .* is not supported by the selected tool", text):
        return {"errors": 0, "lines": [], "says": [unsupported[0]]}
    summary = re.search(r"(?:ERROR SUMMARY|RACECHECK SUMMARY): (\d+)", text)
    lines = sorted({int(line) for line in re.findall(rf"{re.escape(source)}:(\d+)", text)})
    says = [line.removeprefix("=========").strip() for line in text.splitlines() if line.startswith("=========")]
    headlines = [
        s for s in says if re.match(r"(Invalid|Error|Warning|Uninit|Barrier|Program hit|Leaked|Race|Unused)", s)
    ]
    return {"errors": int(summary[1]) if summary else 0, "lines": lines, "says": sorted(set(headlines))[:6]}


def compare(item: CorpusFile) -> dict[str, Any]:
    """Run a faulty kernel under all tools, and its correct twin under those that found something."""
    row: dict[str, Any] = {
        "name": item.name,
        "simulator": {str(line): sorted(kinds) for line, kinds in sorted(item.marks.items())},
    }
    for twin, clean in (("faulty", False), ("clean", True)):
        if clean and item.fault:  # -DCLEAN does not repair it; the correct file has a row of its own
            row[twin] = {}
            continue
        with tempfile.TemporaryDirectory() as folder:
            program = build(item, clean, Path(folder))
            if isinstance(program, str):
                row[twin] = {"build": program}
                continue
            # Run the correct twin only under the tools that found something in the faulty kernel.
            tools = [tool for tool in TOOLS if not clean or row["faulty"].get(tool, {}).get("errors")]
            row[twin] = {tool: watch(program, f"{item.path.stem}.cu", tool) for tool in tools}
    found = [tool for tool in TOOLS if row["faulty"].get(tool, {}).get("errors")]
    theirs = {line for tool in found for line in row["faulty"][tool]["lines"]}
    ours = set(item.marks)
    row["found_by"] = found
    row["same_lines"] = bool(theirs & ours)
    row["only_theirs"] = sorted(theirs - ours)
    row["twin_silent"] = not any(row["clean"].get(tool, {}).get("errors") for tool in TOOLS)
    return row


def as_text(row: dict[str, Any]) -> str:
    """Return one line of the table."""
    ours = ", ".join(f"{'/'.join(kinds)}@{line}" for line, kinds in row["simulator"].items())
    theirs = ", ".join(f"{tool}@{row['faulty'][tool]['lines']}" for tool in row["found_by"]) or "nothing"
    if "build" in row["faulty"]:
        theirs = "does not build with nvcc"
    return f"{row['name']:48} {ours:44} {theirs}{'' if row['twin_silent'] else '  (twin not silent)'}"


def main() -> int:
    """Run the corpus, print the table and record it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="parts of names (default: all)")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    items = [item for item in corpus_files() if not arguments.names or any(n in item.name for n in arguments.names)]
    items = [item for item in items if item.path.parent.name != "tensor_memory"]  # an H200 cannot run these
    rows: list[dict[str, Any]] = []
    with ThreadPoolExecutor(min(16, os.cpu_count() or 1)) as pool:
        for row in pool.map(compare, items):
            rows.append(row)
            print(as_text(row), flush=True)
    found = sum(bool(row["found_by"]) for row in rows)
    print(f"{len(rows)} faulty kernels: the simulator finds all, compute-sanitizer {found}")
    if arguments.out:
        renewed = None
        if arguments.names:
            renewed = replace_rows(arguments.out, rows, (item.path for item in items))
            rows.sort(key=lambda row: str(row["name"]))
        command = "python -m tests.gpu.compare_findings --out FILE.json"
        write_record(arguments.out, {**versions(), "command": command, "rows": rows}, course_root(), renewed)
    return 0


if __name__ == "__main__":
    sys.exit(main())
