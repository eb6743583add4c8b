"""Run every solution under the four tools of compute-sanitizer and record what they say.

``python -m tests.gpu.sanitize --out FILE.json [NAME...]``
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from pathlib import Path

TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")


def run_tool(tool: str, names: list[str], timeout: float) -> dict[str, object]:
    """One run of one tool over the solutions: what was launched, and the tool's errors."""
    command = [
        "compute-sanitizer",
        "--tool",
        tool,
        "--print-limit",
        "20",
        sys.executable,
        "-m",
        "tests.gpu.launch_solutions",
        *names,
    ]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout)
        text = done.stdout + done.stderr
    except subprocess.TimeoutExpired as expired:
        text = (expired.stdout or b"").decode() + f"\nFAILED: over {timeout:.0f} s"
    summary = re.findall(r"(?:ERROR|RACECHECK) SUMMARY: .*", text)
    return {
        "tool": tool,
        "launched": re.findall(r"^launched (\S+):", text, re.MULTILINE),
        "failed": re.findall(r"^FAILED.*", text, re.MULTILINE),
        "summary": summary[-1] if summary else "no summary: the tool did not finish",
        "errors": [line for line in text.splitlines() if line.startswith("=========")][:200],
    }


def main() -> int:
    """Build first, so that the tools do not watch nvcc; then one tool after another."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--timeout", type=float, default=240.0, help="seconds for one tool")
    arguments = parser.parse_args()
    subprocess.run([sys.executable, "-m", "tests.gpu.launch_solutions", "--build-only", *arguments.names], check=False)
    results = [run_tool(tool, arguments.names, arguments.timeout) for tool in TOOLS]
    arguments.out.write_text(json.dumps(results, indent=1) + "\n")
    clean = True
    for result in results:
        ok = re.search(r"SUMMARY: 0 (errors|hazards)", str(result["summary"])) and not result["failed"]
        clean = clean and bool(ok)
        print(f"{result['tool']:10} {len(result['launched'])} solutions  {result['summary']}")
        for line in result["failed"]:
            print(f"           {line}")
    return 0 if clean else 1


if __name__ == "__main__":
    sys.exit(main())
