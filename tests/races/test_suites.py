"""The command that runs suites of labeled kernels, tested with a repository that the tests create."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from grader.setup.errors import GraderError
from tests.races import suites
from tests.races.suites import Result, Suite, labeled, launcher, main, read_suites, summary

RACY = """\
// racy --grid=2 --block=[8,8] -DROW=64
__global__ void helper_kernel(const float* x, float2 unused, int* out) {
    if (out) out[blockIdx.x] = x[0];
}
namespace { template <class T> __global__ void of_any_type(T* x) { x[0] = T(threadIdx.x); } }
extern "C" __global__ void sum(int* out, int n) {
    if (n == 7) out[ROW] += threadIdx.x;
}
"""
CLEAN = RACY.replace("// racy", "// fine").replace("out[ROW] += threadIdx.x", "atomicAdd(&out[ROW], int(threadIdx.x))")
IN_REVERSE = """\
// racy --grid=2 --block=1
__device__ int lock;
__global__ void count(int* out, int n) {
    while (atomicCAS(&lock, 0, 1) != 0) {}
    if (blockIdx.x == 1) __threadfence();
    out[0] += 1;
    __threadfence();
    atomicExch(&lock, 0);
}
"""
BROKEN = "// fine --grid=1 --block=32\n__global__ void k() { nowhere(); }\n"
SUITE = """
[[suite]]
name = "made here"
repository = "one/kernels"
commit = "{commit}"
files = ["src/**/*.cu"]
exclude = "skipped"
racy = "^// racy"
clean = "^// fine"
grid = '--grid=\\[?([\\d,]+)'
block = '--block=\\[?([\\d,]+)'
macro = '-D(\\w+=\\w+)'
runs = ["0", "7 index"]

[suite.known."src/b/wrong.cu"]
label = "racy"
why = "line 7 adds without an atomic operation"
"""


def made(**changes: object) -> Suite:
    given = {"name": "n", "repository": "r", "commit": "c", "files": ["**/*.cu"], "racy": "racy", "clean": "fine"}
    return Suite(**{**given, **changes})  # type: ignore[arg-type]


def test_labels_are_read_from_paths_texts_and_other_files(tmp_path: Path) -> None:
    for path, text in {"racy/a.cu": "", "b.cu": "x\n// fine\n", "c.cu": "neither", "d.h": "racy"}.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text)
    (tmp_path / "racy" / "test.desc").write_text("FAILED")
    assert labeled(made(), tmp_path) == {"b.cu": "clean", "racy/a.cu": "racy"}
    assert labeled(made(exclude="^racy"), tmp_path) == {"b.cu": "clean"}
    assert labeled(made(clean="^// fine$"), tmp_path) == labeled(made(), tmp_path)
    assert labeled(made(label="test.desc", racy="FAILED"), tmp_path) == {"racy/a.cu": "racy"}
    with pytest.raises(GraderError, match=r"n has no file gone\.cu with a label"):
        labeled(made(known={"gone.cu": {}}), tmp_path)


def test_the_launcher_launches_each_kernel_that_is_not_a_template() -> None:
    suite = made(grid=r"--grid=\[?([\d,]+)", block=r"--block=\[?([\d,]+)", prelude="#define HERE")
    code = launcher(suite, Path("/kernels.cu"), RACY)
    assert code.startswith('#define HERE\n#include "/kernels.cu"\n')
    assert [line.strip() for line in code.splitlines() if "launch(" in line] == [
        "launcher::launch(::helper_kernel, dim3(2), dim3(8,8), value, index, false);",
        "launcher::launch(::sum, dim3(2), dim3(8,8), value, index, false);",
    ]
    assert "dim3(4), dim3(8,8)" in launcher(made(grid="4", block=suite.block), Path("k.cu"), RACY)
    with pytest.raises(GraderError, match="the block's dimensions"):
        launcher(made(grid="4", block="blockDim=(.)"), Path("k.cu"), RACY)
    with pytest.raises(GraderError, match="no kernel"):
        launcher(made(grid="4", block="4"), Path("k.cu"), "template <class T> __global__ void k(T* x) {}")


def test_counts_are_given_by_the_labels_and_by_the_corrected_ones() -> None:
    labels = {"a": "racy", "b": "racy", "c": "clean", "d": "clean", "e": "racy"}
    known = {"b": {"label": "clean", "why": "line 3"}, "c": {"label": "racy", "why": "line 4"}, "e": {"why": "line 5"}}
    results = {"a": Result("a", True), "b": Result("b"), "c": Result("c", True), "e": Result("e")}
    row = summary(made(known=known), labels, {**results, "d": Result("d", not_run="no header")})
    assert row["as labeled"] == {"racy": 3, "found": 1, "clean": 1, "accused": 1}
    assert row["corrected"] == {"racy": 3, "found": 2, "clean": 1, "accused": 0}
    assert row["not run"] == {"no header": 1}
    assert [(one["path"], one["true"], one["result"], one["why"]) for one in row["differing"]] == [
        ("b", "clean", "silent", "line 3"),
        ("c", "racy", "reported", "line 4"),
        ("e", "racy", "silent", "line 5"),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[[suite]]\nnme = 1", "no key nme"),
        ("[[suite]]\nname = 'x'", "needs the key clean, commit, files, racy, repository"),
        (SUITE.replace("^// racy", "("), "racy of made here is not a regular expression"),
        ("[[suite", "cannot be read"),
    ],
)
def test_a_wrong_description_is_an_error(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "suites.toml").write_text(text)
    with pytest.raises(GraderError, match=message.replace("(", r"\(")):
        read_suites(tmp_path / "suites.toml")


def test_a_suite_is_run_compared_and_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path / "one" / "kernels"
    files = {"a/racy.cu": RACY, "a/clean.cu": CLEAN, "b/wrong.cu": RACY.replace("// racy", "// fine")}
    files["a/in_reverse.cu"] = IN_REVERSE
    for name, text in {**files, "broken.cu": BROKEN, "skipped.cu": RACY}.items():
        (place / "src" / name).parent.mkdir(parents=True, exist_ok=True)
        (place / "src" / name).write_text(text)
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false", "-C", str(place)]
    for command in (["init", "--quiet"], ["add", "."], ["commit", "--quiet", "-m", "all"]):
        subprocess.run([*git, *command], check=True)
    commit = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout.strip()
    description = tmp_path / "suites.toml"
    description.write_text(SUITE.replace("{commit}", commit))
    monkeypatch.setattr(suites, "RECORD", tmp_path / "record.json")

    asked = [str(description), str(tmp_path), "--workers", "1", "--record"]
    assert main([*asked, "--suite", "other"]) == 2
    assert "has no suite other" in capsys.readouterr().err
    assert main(asked) == 0
    printed = capsys.readouterr().out
    (row,) = json.loads((tmp_path / "record.json").read_text())["suites"]
    assert row["as labeled"] == {"racy": 2, "found": 2, "clean": 2, "accused": 1}
    assert row["corrected"] == {"racy": 3, "found": 3, "clean": 1, "accused": 0}
    (reason,) = row["not run"]
    assert "nowhere" in reason
    assert "src/b/wrong.cu: labeled clean, reported (wrong label, racy): line 7 adds" in printed

    assert main(asked) == 0  # all results are kept
    assert "reported     racy" in printed and "reported     racy" not in capsys.readouterr().out
