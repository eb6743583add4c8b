"""Functions that lessons import: numbers that can be checked by hand, lookup of files, and plots."""

from __future__ import annotations

import base64
import io
import json
from pathlib import Path
from types import SimpleNamespace

import matplotlib
import pytest

from grader.setup.errors import GraderError

matplotlib.use("Agg")

from grader.report.notebook import (
    compare,
    draw_banks,
    draw_sectors,
    h200_goals,
    h200_profiles,
    h200_table,
    least_seconds,
    lesson,
    library_times,
    measure_here,
    pattern,
    requests,
    roofline,
    show_source,
)
from grader.report.notebook.accesses import Request
from grader.report.notebook.execute import compact_picture, execute
from grader.report.notebook.gpus import GPUS, gpu
from grader.report.notebook.source import function
from tests.notebooks.lessons import ROOT
from tests.small_course import write_course

KERNEL = """#include <cuda_runtime.h>
#include <cfloat>

constexpr int kWidth = 4;  // a brace in a comment {

// One element.
struct Pair {
    float a, b;
    __device__ float sum() const { return a + b; }
};

// Adds two vectors.
// x, y, out: (n)
template <typename T>
__global__ void add_kernel(const T* x, const T* y, T* out, long long n) {
    const char* text = "}";
    if (n > 0) { out[0] = x[0] + y[0]; }
}

extern "C" void add(const float* x, const float* y, float* out, long long n, cudaStream_t stream) {
    add_kernel<float><<<1, 1, 0, stream>>>(x, y, out, n);
}
"""


# --- accesses ---


@pytest.mark.parametrize(
    ("request_", "sectors", "ideal"),
    [
        (pattern(lambda lane: 4 * lane), 4, 4),
        (pattern(lambda lane: 4 * lane + 4), 5, 4),
        (pattern(lambda lane: 128 * lane), 32, 4),
        (pattern(lambda lane: 0), 1, 1),
        (pattern(lambda lane: 16 * lane, size=16), 16, 16),
        (pattern(lambda lane: 2 * lane, size=2), 2, 2),
        (Request({0: 30}, size=4), 2, 1),
    ],
)
def test_sectors(request_: Request, sectors: int, ideal: int) -> None:
    assert (len(request_.sectors()), request_.ideal_sectors()) == (sectors, ideal)


@pytest.mark.parametrize(
    ("request_", "wavefronts", "least"),
    [
        (pattern(lambda lane: 4 * lane), 1, 1),
        (pattern(lambda lane: 128 * lane), 32, 1),
        (pattern(lambda lane: 132 * lane), 1, 1),
        (pattern(lambda lane: 8 * lane), 2, 1),
        (pattern(lambda lane: 0), 1, 1),
        (pattern(lambda lane: 16 * lane, size=16), 4, 4),
        (pattern(lambda lane: 8 * lane, size=8), 2, 2),
        (pattern(lambda lane: 2 * lane, size=2), 1, 1),
        # If neighboring lanes read the same address, two quarters or both halves of the warp share a wavefront.
        (pattern(lambda lane: 0, size=16), 2, 2),
        (pattern(lambda lane: lane // 2 * 16, size=16), 2, 2),
        (pattern(lambda lane: (lane % 2 + lane // 4 * 2) * 16, size=16), 2, 2),
        (pattern(lambda lane: lane % 4 * 16, size=16), 4, 4),
        (pattern(lambda lane: lane // 2 * 16, size=16, write=True), 4, 4),
        (pattern(lambda lane: lane // 2 * 8, size=8), 1, 1),
    ],
)
def test_wavefronts(request_: Request, wavefronts: int, least: int) -> None:
    assert (request_.wavefronts(), len(request_.phases())) == (wavefronts, least)


def test_requests_choose_from_what_was_recorded() -> None:
    def item(line: int, space: str, warp: int) -> SimpleNamespace:
        return SimpleNamespace(
            line=line, space=space, name="x", warp=warp, size=4, write=False, addresses={0: 0, 1: 4 * line}
        )

    report = SimpleNamespace(trace=[item(3, "global", 0), item(3, "global", 1), item(5, "shared", 0)])
    assert [request.line for request in requests(report)] == [3, 3, 5]
    assert requests(report, line=3, warp=1)[0].addresses == {0: 0, 1: 12}
    assert len(requests(report, space="shared")) == 1
    with pytest.raises(GraderError, match="no such access") as caught:
        requests(report, line=4)
    assert "[3, 5]" in caught.value.hint


def test_pictures_say_what_they_show() -> None:
    import matplotlib.pyplot as plt

    assert draw_sectors(pattern(lambda lane: 128 * lane, name="x")).get_title(loc="left") == (
        "a warp reads x: 32 sectors, minimum 4"
    )
    assert draw_banks(pattern(lambda lane: 128 * lane, write=True, name="tile")).get_title(loc="left") == (
        "a warp writes tile: 32 wavefronts, minimum 1 (32-way conflict)"
    )
    for draw in (draw_sectors, draw_banks):
        figure = compare(pattern(lambda lane: 128 * lane), pattern(lambda lane: 4 * lane), draw, ("before", "after"))
        assert len(figure.axes) == 2 and figure.axes[0].get_title(loc="left").startswith("before: ")
    with pytest.raises(GraderError, match="no lanes"):
        draw_sectors(Request())
    plt.close("all")


# --- rooflines ---


def test_roofline_times() -> None:
    assert least_seconds(0, 4.8e12, "H200") == pytest.approx(1.0)
    assert least_seconds(67e12, 1, "H200") == pytest.approx(1.0)
    assert least_seconds(989e12, 1, "H200", tensor_cores=True) == pytest.approx(1.0)
    assert GPUS["H200"].ridge() == pytest.approx(67 / 4.8)
    assert gpu("rtx4090").name == "RTX 4090"
    with pytest.raises(GraderError, match="H200"):
        gpu("H2000")


def test_roofline_draws() -> None:
    import matplotlib.pyplot as plt

    ax = roofline({"simple": (1e9, 1e9), "tiled": (1e9, 1e7, 1e-4)}, gpu="L4")
    assert ax.get_title(loc="left") == "Roofline of one L4"
    ax = roofline({"memory-bound": (1e9, 1e9), "first": (1e9, 1e6), "second": (4e9, 1e6)}, gpu="L4")
    below = {text.get_text(): -text.xyann[1] for text in ax.texts if hasattr(text, "xyann")}
    assert 10 < below["first"] < 20 and below["second"] > below["first"] + 10, "labels are right below their points"
    plt.close("all")


# --- sources ---


def test_one_function_with_its_comment(tmp_path: Path) -> None:
    text = function(KERNEL, "add_kernel")
    assert text.startswith("// Adds two vectors.\n// x, y, out: (n)\ntemplate <typename T>\n__global__ void add_kernel")
    assert text.endswith("}\n}") or text.splitlines()[-1] == "}"
    assert "add_kernel<float>" not in text and "Pair" not in text
    assert function(KERNEL, "add").splitlines()[0].startswith('extern "C" void add(')
    assert function(KERNEL, "Pair").splitlines()[0] == "// One element."
    assert function(KERNEL, "Pair").splitlines()[-1] == "};"
    path = tmp_path / "k.cu"
    path.write_text(KERNEL)
    assert str(show_source(path)).startswith("#include") and "struct Pair" in str(show_source(path, "Pair", "add"))
    with pytest.raises(GraderError, match="defines no function 'adds'"):
        show_source(path, "adds")
    with pytest.raises(GraderError, match="functions are: none"):
        function("int x;", "add")
    with pytest.raises(GraderError, match="cannot read"):
        show_source(tmp_path / "none.cu")


def test_a_part_of_a_function_and_a_folded_listing(tmp_path: Path) -> None:
    path = tmp_path / "k.cu"
    path.write_text(
        "__global__ void f() {\n    for (int k = 0;\n         k < 2; ++k) {\n#pragma unroll\n        g(k);  // }\n   "
        " }\n}\n"
    )
    part = show_source(path, "f", part="for (int k")
    assert str(part) == "for (int k = 0;\n     k < 2; ++k) {\n#pragma unroll\n    g(k);  // }\n}"
    with pytest.raises(GraderError, match="no statement with a block that begins with 'while'"):
        show_source(path, part="while")
    folded = show_source(path, folded="After you have solved <it>")._repr_mimebundle_()
    assert folded["text/plain"] == "After you have solved <it>"
    assert folded["text/html"].startswith("<details><summary>After you have solved &lt;it&gt;</summary><pre")


@pytest.mark.parametrize(
    "path", sorted(ROOT.glob("lessons/*/*.cu")), ids=lambda path: f"{path.parent.name}/{path.name}"
)
def test_kernels_of_every_lesson_can_be_shown_in_pieces(path: Path) -> None:
    import re

    text = path.read_text(encoding="utf-8")
    for name in re.findall(r"__global__[^;{]*?\b(\w+)\s*\([^)]*\)\s*\{", text):
        if name == "__launch_bounds__":
            continue
        piece = function(text, name)
        assert "__global__" in piece and piece.count("{") == piece.count("}"), piece


# --- places ---


def test_a_lesson_is_found_from_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "exercises").mkdir()
    (tmp_path / "exercises" / "course.toml").touch()
    folder = tmp_path / "lessons" / "day06_flash_attention"
    folder.mkdir(parents=True)
    monkeypatch.chdir(folder)
    assert lesson("day06_flash_attention") == folder == lesson("6")
    assert repr(lesson("6") / "flash.cu") == "lessons/day06_flash_attention/flash.cu"
    with pytest.raises(GraderError, match="no lesson"):
        lesson("day99")


# --- recorded times ---


def test_h200_table(tmp_path: Path) -> None:
    assert "Not recorded yet" in str(h200_table(tmp_path)) and "--record" in str(h200_table(tmp_path, "softmax"))
    timing = {
        "name": "large", "dtype": "f32", "clock": "GPU", "median_us": 512.25, "torch_eager_us": 600.0,
        "torch_ratio": 1.17, "percent_of_copy": 96.0, "percent_of_roofline": 95.0,
    }  # fmt: skip
    machine = {
        "device": "NVIDIA H200", "driver": "580.1", "cuda": "13.0", "torch": "2.11", "product_gigaflops": {"f32": 5e4},
        "copy_gigabytes_per_second": 4200.0,
    }  # fmt: skip
    entry = {"timings": [timing], "machine": machine, "device": "cuda", "date": "2026-01-02"}
    (tmp_path / "h200.json").write_text(json.dumps({"version": 1, "exercises": {"softmax": entry}}))
    text = str(h200_table(tmp_path))
    assert "softmax" in text and "512 us" in text and "1.17" in text and "2026-01-02" in text and "NVIDIA H200" in text
    assert "x torch: torch's time divided by the median" in text and "same bytes:" not in text
    assert "Not recorded yet: argmax" in str(h200_table(tmp_path, "softmax", "argmax"))
    entry["timings"] = [{**timing, "copy_us": 500.0}]
    (tmp_path / "h200.json").write_text(json.dumps({"version": 1, "exercises": {"softmax": entry}}))
    assert "same bytes" in str(h200_table(tmp_path)) and "98 %" in str(h200_table(tmp_path))
    entry["timings"] = [timing, {**timing, "dtype": "f16"}]
    (tmp_path / "h200.json").write_text(json.dumps({"version": 1, "exercises": {"softmax": entry}}))
    lines = str(h200_table(tmp_path)).splitlines()
    assert lines[1] == "softmax", "a kernel's name is a line of its own"
    assert "  large  f32" in lines[2] and "large" not in lines[3], "rows of other dtypes do not repeat the size"
    (tmp_path / "h200.json").write_text("{")
    with pytest.raises(GraderError, match="cannot be read"):
        h200_table(tmp_path)


def test_h200_goals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    task = 'title = "T"\nkind = "implement"\npoints = 5'
    write_course(tmp_path, {"day02_x": ""}, {"day02_x/softmax": task, "day02_x/argmax": task})
    monkeypatch.setenv("GRADER_COURSE", str(tmp_path))
    folder = tmp_path / "lessons" / "day02_x"
    assert "no goals" in str(h200_goals(folder))
    timing = {"name": "large", "dtype": "f32", "clock": "GPU", "torch_ratio": 1.17, "percent_of_copy": 96.0}
    entry = {"timings": [timing], "machine": {"device": "NVIDIA H200"}, "date": "2026-01-02"}
    (folder / "h200.json").write_text(json.dumps({"version": 1, "exercises": {"softmax": entry}}))
    goal = '[[goal]]\nexercise = "day02_x/softmax"\nyardstick = "torch"\nat_least = 1.0\n'
    copy = goal.replace("torch", "copy").replace("1.0", "0.97") + 'why = """A launch\ntakes time."""\n'
    argmax = goal.replace("softmax", "argmax") + 'not_recorded = "it is new"\n'
    (tmp_path / "exercises" / "goals.toml").write_text(goal + copy + argmax)
    text = str(h200_goals(folder))
    assert "softmax: at least 1.00x torch. Met in 1 of 1 rows." in text
    assert "Met in 0 of 1 rows" in text and "Not met: large, f32 (0.96). A launch takes time." in text
    assert "argmax: at least 1.00x torch. Not recorded: it is new." in text
    (tmp_path / "exercises" / "goals.toml").write_text(goal.replace("softmax", "softmax_"))
    with pytest.raises(GraderError, match="did you mean day02_x/softmax"):
        h200_goals(folder)


def test_library_times(tmp_path: Path) -> None:
    assert "python -m tests.gpu.libraries" in str(library_times(tmp_path))
    rows = [
        {"size": "4 x 4", "name": "ours", "us": 12.5, "error": 1e-3},
        {"size": "8 x 8", "name": "ours", "us": 25.0, "error": 2e-3},
        {"size": "8 x 8", "name": "cuBLAS", "us": 20.0},
    ]
    record = {"gpu": "NVIDIA H200", "cuda": "13.0", "date": "2026-11-28", "command": "python", "rows": rows}
    (tmp_path / "libraries_gpu.json").write_text(json.dumps(record | {"note": "one is missing"}))
    head, ours, cublas, *rest = str(library_times(tmp_path)).splitlines()
    assert head.split() == ["function", "4", "x", "4", "8", "x", "8", "error"]
    assert ours.split()[0] == "ours" and ours.split()[-1] == "1e-03" and cublas.split()[0] == "cuBLAS"
    assert "one is missing" in rest[1] and "NVIDIA H200" in rest[2]


def test_h200_profiles(tmp_path: Path) -> None:
    assert "python -m tests.gpu.profile" in str(h200_profiles(tmp_path))
    shares = ("DRAM, % of peak", "L2, % of peak", "issue slots, % used", "integer and logic unit, %")
    figures = dict.fromkeys((*shares, "float unit, %", "tensor cores, % of time"), 12.4)
    figures |= {"us": 71.26, "warps per SM": 15.7, "waits for a barrier": 1.0, "waits for global memory": 3.26}
    record = {"gpu": "NVIDIA H200", "date": "2026-01-02", "command": "profile", "kernels": {"argmax, f32": figures}}
    (tmp_path / "profiles_gpu.json").write_text(json.dumps(record))
    lines = str(h200_profiles(tmp_path)).splitlines()
    assert " ".join(lines[1].split()) == f"argmax, f32 71.3 us{' 12 %' * 6} 16 global memory: 3.3"
    assert lines[-1] == "NVIDIA H200, 2026-01-02: profile"
    name = "moe_decode, 64 tokens, 64 experts, 6 each, f16: gate_up_kernel"
    (tmp_path / "profiles_gpu.json").write_text(json.dumps({**record, "kernels": {name: figures}}))
    assert name in str(h200_profiles(tmp_path)).splitlines(), "a long name is a line of its own"


def test_measure_here_reports_a_missing_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert "No GPU here" in str(measure_here("softmax"))


# --- execute ---


def notebook(path: Path, *sources: str) -> Path:
    import nbformat

    made = nbformat.v4.new_notebook()
    made.cells = [nbformat.v4.new_code_cell(source, id=f"c{number}") for number, source in enumerate(sources)]
    path.write_text(nbformat.writes(made))
    return path


def test_execute_keeps_outputs_in_canonical_form(tmp_path: Path) -> None:
    path = notebook(tmp_path / "a.ipynb", "import os; print(os.path.basename(os.getcwd()))", "6 * 7")
    assert execute(path) > 0
    first = path.read_text()
    assert tmp_path.name in first and '"42"' in first
    execute(path)
    assert path.read_text() == first


def test_a_picture_keeps_its_colors_where_there_are_few(tmp_path: Path) -> None:
    import numpy
    from PIL import Image

    def compacted(pixels: numpy.ndarray) -> tuple[numpy.ndarray, int, int]:
        own = io.BytesIO()
        Image.fromarray(pixels).save(own, "PNG")
        compact = base64.b64decode(compact_picture(base64.b64encode(own.getvalue()).decode()))
        return numpy.asarray(Image.open(io.BytesIO(compact)).convert("RGB")), len(compact), len(own.getvalue())

    random = numpy.random.default_rng(1)
    few = random.integers(0, 256, (200, 3)).astype(numpy.uint8)[random.integers(0, 200, (64, 64))]
    after, _, _ = compacted(few)
    assert (after == few).all()
    smooth = numpy.stack([*numpy.meshgrid(numpy.arange(256), numpy.arange(256)), numpy.full((256, 256), 90)], -1)
    after, size, before = compacted(smooth.astype(numpy.uint8))
    assert size <= before and abs(after.astype(int) - smooth).mean() < 8


def test_execute_leaves_a_failing_notebook_alone(tmp_path: Path) -> None:
    path = notebook(tmp_path / "a.ipynb", "1", "1 / 0", "2")
    before = path.read_text()
    with pytest.raises(GraderError, match=r"code cell 2 \('1 / 0'\) fails"):
        execute(path)
    assert path.read_text() == before


def test_a_listing_is_html_in_a_fixed_font(tmp_path: Path) -> None:
    path = tmp_path / "k.cu"
    path.write_text(KERNEL)
    bundle = show_source(path, "add")._repr_mimebundle_()
    assert bundle["text/html"].startswith("<pre") and "monospace" in bundle["text/html"]
    assert "&lt;&lt;&lt;" in bundle["text/html"] and bundle["text/plain"].startswith('extern "C"')
