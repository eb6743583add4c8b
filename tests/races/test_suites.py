"""The command that runs suites of labeled kernels, tested with a repository that the tests create."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from grader.setup.errors import GraderError
from tests.races import suites
from tests.races.suites import Result, Suite, files_of, labeled, launcher, main, read_suites, summary

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
IN_STRUCTURE = """\
// racy --grid=2 --block=1 --number=5
struct Arrays { int* in; int* out[2]; };
__global__ void k(Arrays arrays, int n) {
    extern __shared__ int tile[];
    needs(n == NUMBER);
    tile[threadIdx.x] = arrays.in[1];
    arrays.out[tile[threadIdx.x]][0] = blockIdx.x;
}
"""
UNMET = IN_STRUCTURE.replace("n == NUMBER", "n == 3")
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
define = ["NUMBER=7"]
prelude = '''
#include <cassert>
#define needs(condition) assert(condition)
'''
runs = ["0", "7 index", "7 index pointers"]

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
    files = files_of(made(), tmp_path)
    assert files == ["b.cu", "c.cu", "racy/a.cu"]
    assert labeled(made(), tmp_path, files) == {"b.cu": "clean", "racy/a.cu": "racy"}
    assert labeled(made(exclude="^racy"), tmp_path, files) == {"b.cu": "clean"}
    assert labeled(made(clean="^// fine$"), tmp_path, files) == labeled(made(), tmp_path, files)
    assert labeled(made(label="test.desc", racy="FAILED"), tmp_path, files) == {"racy/a.cu": "racy"}
    with pytest.raises(GraderError, match=r"n has no file gone\.cu with a label"):
        labeled(made(known={"gone.cu": {}}), tmp_path, files)


def test_the_launcher_launches_each_kernel_that_is_not_a_template() -> None:
    suite = made(grid=r"--grid=\[?([\d,]+)", block=r"--block=\[?([\d,]+)", prelude="#define HERE")
    code = launcher(suite, Path("/kernels.cu"), RACY)
    assert code.startswith('#define HERE\n#include "/kernels.cu"\n')
    assert [line.strip() for line in code.splitlines() if "launch(" in line] == [
        "launcher::launch(::helper_kernel, dim3(2), dim3(8,8), words, 0, false);",
        "launcher::launch(::sum, dim3(2), dim3(8,8), words, 0, false);",
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
    assert row["not run"] == {"no header": ["d"]}
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
    files |= {"a/in_reverse.cu": IN_REVERSE, "a/in_structure.cu": IN_STRUCTURE, "unmet.cu": UNMET}
    for name, text in {**files, "broken.cu": BROKEN, "skipped.cu": RACY, "unlabeled.cu": "// a kernel"}.items():
        (place / "src" / name).parent.mkdir(parents=True, exist_ok=True)
        (place / "src" / name).write_text(text)
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false", "-C", str(place)]
    for command in (["init", "--quiet"], ["add", "."], ["commit", "--quiet", "-m", "all"]):
        subprocess.run([*git, *command], check=True)
    commit = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout.strip()
    description = tmp_path / "suites.toml"
    description.write_text(SUITE.replace("{commit}", commit))
    monkeypatch.setattr(suites, "RECORD", tmp_path / "record.json")

    asked = [str(tmp_path), "--suites", str(description), "--workers", "1", "--record"]
    assert main([*asked, "--suite", "other"]) == 2
    assert "has no suite other" in capsys.readouterr().err
    assert main(asked) == 0
    printed = capsys.readouterr().out
    (row,) = json.loads((tmp_path / "record.json").read_text())["suites"]
    assert row["as labeled"] == {"racy": 3, "found": 3, "clean": 2, "accused": 1}
    assert row["corrected"] == {"racy": 4, "found": 4, "clean": 1, "accused": 0}
    assert row["unlabeled"] == 2
    (undefined, broken), (unmet, requires) = sorted(row["not run"].items())
    assert "nowhere" in undefined and broken == ["src/broken.cu"]
    assert (unmet, requires) == ("an assertion failed: n == 3", ["src/unmet.cu"])
    assert "src/b/wrong.cu: labeled clean, reported (wrong label, racy): line 7 adds" in printed

    assert main(asked) == 0  # all results are kept
    assert "reported     racy" in printed and "reported     racy" not in capsys.readouterr().out
    description.write_text(description.read_text().replace("NUMBER=7", "NUMBER=6"))
    assert main(asked) == 0  # no longer the same suite
    assert "not run      racy   src/a/in_structure.cu" in capsys.readouterr().out


def test_the_record_has_the_suites_of_the_default_description() -> None:
    described = {suite.name: suite for suite in read_suites(suites.SUITES)}
    rows = {row["name"]: row for row in json.loads(suites.RECORD.read_text())["suites"]}
    assert rows.keys() == described.keys()
    for name, row in rows.items():
        suite = described[name]
        assert (row["repository"], row["commit"], row["published"]) == (suite.repository, suite.commit, suite.published)
        assert {one["path"]: one["why"] for one in row["differing"]} == {
            path: known["why"] for path, known in suite.known.items()
        }
        assert {one["path"] for one in row["differing"] if one["true"] != one["label"]} == {
            path for path, known in suite.known.items() if "label" in known
        }
