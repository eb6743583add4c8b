"""Parsing of Nsight Compute's tables, with a fake ncu that prints program output before its table."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from grader.judge.timing import nsight_compute
from grader.setup.errors import GraderError

METRICS = {"us": ("gpu__time_duration.sum", 1e-3), "blocks": ("launch__grid_size", 1.0)}
STALLS = {"memory": "long_scoreboard"}

NCU = f"""#!{sys.executable}
import sys
at = sys.argv.index("--metrics")
print("the program says", *sys.argv[at + 2 :])
if sys.argv[at + 2] == "fails":
    sys.exit("==ERROR== ERR_NVGPUCTRPERM")
names = sys.argv[at + 1].split(",")
rows = [["ID", "Kernel Name", *names], ["", "", "ns", "", "inst"]]
rows += [[str(i), f"void kernel<{{i}}>(int, int)", "1,234.5", f"{{132 + i}}", "0.75"] for i in range(2)]
for row in rows:
    print(",".join(f'"{{cell}}"' for cell in row))
"""


@pytest.fixture
def ncu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "ncu"
    program.write_text(NCU)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))


@pytest.mark.usefixtures("ncu")
def test_figures_of_each_kernel_are_converted_to_fixed_units() -> None:
    found = nsight_compute.count(["--launch-skip", "1"], ["program"], METRICS, STALLS)
    assert found == [
        (f"void kernel<{i}>(int, int)", {"us": 1.23, "blocks": 132 + i, "waits for memory": 0.75}) for i in range(2)
    ]


@pytest.mark.usefixtures("ncu")
def test_errors_of_ncu_are_shown() -> None:
    with pytest.raises(GraderError, match=r"(?s)saw no kernel.*the program says fails.*ERR_NVGPUCTRPERM"):
        nsight_compute.count([], ["fails"], METRICS, STALLS)


def test_a_machine_without_it_is_a_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(GraderError, match="ncu is not on the PATH"):
        nsight_compute.count([], ["program"], METRICS, STALLS)
