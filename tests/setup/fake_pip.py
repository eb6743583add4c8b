"""Replaces pip in a .venv. `fake.json` in the course names the step at which it fails or hangs.

Like the real pip, it regards a package as installed if its dist-info is in site-packages, even if unpacking was
interrupted and half of the files are missing.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
import time
from pathlib import Path

PACKAGES = Path(__file__).resolve().parents[1]
COURSE = Path.cwd()


def told(place: str) -> None:
    """Do what the test requests for this step: nothing, hang until the pipe closes, or fail."""
    plan = json.loads((COURSE / "fake.json").read_text()) if (COURSE / "fake.json").exists() else {}
    if plan.get("place") != place:
        return
    if "says" in plan:
        print(plan["says"], flush=True)
        sys.exit(1)
    (COURSE / "reached").touch()
    while True:
        print("still here", flush=True)
        time.sleep(0.02)


def install() -> None:
    """Install a fake torch of the version that constraints.txt pins."""
    (PACKAGES / "course.pth").write_text(f"{COURSE}\n")
    version = re.search(r"^torch==(\S+)", (COURSE / "constraints.txt").read_text(), re.MULTILINE)[1]
    if (PACKAGES / f"torch-{version}.dist-info").exists():
        print(f"Requirement already satisfied: torch=={version}")
        return
    print(f"Collecting torch=={version}\n  Downloading torch-{version}-py3-none-any.whl (50.0 MB)", flush=True)
    print("Progress 0 of 50000000\nProgress 20000000 of 50000000", flush=True)
    told("download")
    print("Progress 50000000 of 50000000\nInstalling collected packages: torch, tiny", flush=True)
    for old in [*PACKAGES.glob("torch*")]:
        shutil.rmtree(old)
    (PACKAGES / f"torch-{version}.dist-info").mkdir()
    (PACKAGES / "torch").mkdir()
    told("unpacking")
    (PACKAGES / "torch" / "version.txt").write_text(version)


if __name__ == "__main__":
    if "--dry-run" in sys.argv:
        planned = json.loads((COURSE / "planned.json").read_text()) if (COURSE / "planned.json").exists() else []
        Path(sys.argv[sys.argv.index("--report") + 1]).write_text(json.dumps({"install": planned}))
    elif "-e" in sys.argv:
        install()
    else:
        told("tools")
        # The fake uv records its arguments in the file `called`.
        (PACKAGES.parents[2] / "bin" / "uv").write_text('#!/bin/sh\necho "uv $*" > called\n')
        (PACKAGES.parents[2] / "bin" / "uv").chmod(0o755)
