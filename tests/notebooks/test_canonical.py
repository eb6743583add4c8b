"""The canonical form of notebooks: every lesson has this form, and the form has the promised properties."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import nbformat
import pytest

from grader.report.notebook import predict
from grader.report.notebook.canonical import canonical_text, main
from grader.setup.errors import GraderError
from tests.notebooks.lessons import NAMES, NOTEBOOKS


@pytest.mark.parametrize("path", NOTEBOOKS, ids=NAMES)
def test_lessons_are_canonical(path: Path) -> None:
    same = canonical_text(path) == path.read_text(encoding="utf-8")
    assert same, (
        f"not canonical; correct it: python -m grader.report.notebook.canonical {path.relative_to(path.parents[2])}"
    )


def noisy() -> nbformat.NotebookNode:
    """Return a notebook as saved by an editor, with versions, timings, random ids and trailing lines."""
    notebook = nbformat.v4.new_notebook()
    notebook.metadata = nbformat.from_dict(
        {
            "kernelspec": {"name": "my-env", "display_name": "My env (3.11.9)", "language": "python"},
            "language_info": {"name": "python", "version": "3.11.9"},
            "widgets": {},
        }
    )
    code = nbformat.v4.new_code_cell("print(1)\r\n\n", execution_count=17)
    code.metadata = nbformat.from_dict(
        {"execution": {"iopub.status.busy": "2026-01-01"}, "tags": ["nbval-check-output", "b", "b"], "scrolled": True}
    )
    code.outputs = [
        nbformat.v4.new_output("stream", name="stdout", text="one "),
        nbformat.v4.new_output("stream", name="stdout", text="two\n<object at 0x7fc2450b1b90>\n"),
        nbformat.v4.new_output(
            "execute_result", data={"text/plain": "<f at 0x55d0c8e3f2a0>"}, execution_count=17, metadata={"a": 1}
        ),
    ]
    unrun = nbformat.v4.new_code_cell("x = 0x1F")
    notebook.cells = [nbformat.v4.new_markdown_cell("# Title\n\n"), code, unrun]
    return notebook


def written(tmp_path: Path, notebook: nbformat.NotebookNode) -> Path:
    path = tmp_path / "n.ipynb"
    path.write_text(nbformat.writes(notebook))
    return path


def test_noise_is_removed(tmp_path: Path) -> None:
    data = json.loads(canonical_text(written(tmp_path, noisy())))
    assert data["metadata"] == {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    title, code, unrun = data["cells"]
    assert title["source"] == ["# Title"] and code["source"] == ["print(1)"]
    assert code["metadata"] == {"tags": ["b", "nbval-check-output"]}
    assert code["execution_count"] == 1 and unrun["execution_count"] is None
    stream, result = code["outputs"]
    assert "".join(stream["text"]) == "one two\n<object at 0x...>\n"
    assert (
        result["data"]["text/plain"] == ["<f at 0x...>"] and result["execution_count"] == 1 and not result["metadata"]
    )
    assert unrun["source"] == ["x = 0x1F"]


def test_it_is_idempotent(tmp_path: Path) -> None:
    path = written(tmp_path, noisy())
    path.write_text(canonical_text(path))
    assert canonical_text(path) == path.read_text()


def test_valid_ids_are_kept_and_others_are_deterministic(tmp_path: Path) -> None:
    notebook = noisy()
    notebook.cells[0].id, notebook.cells[1].id = "question", "question"
    del notebook.cells[2]["id"]
    notebook.nbformat_minor = 4
    path = written(tmp_path, notebook)
    first = [cell["id"] for cell in json.loads(canonical_text(path))["cells"]]
    assert first == [cell["id"] for cell in json.loads(canonical_text(path))["cells"]]
    assert len(set(first)) == 3


def test_a_cell_that_shows_a_picture_is_folded(tmp_path: Path) -> None:
    notebook = noisy()
    picture = nbformat.v4.new_output("display_data", data={"image/png": "aGk="})
    notebook.cells.append(nbformat.v4.new_code_cell("plt.plot(x)", outputs=[picture], metadata={"tags": ["b"]}))
    *_, printed, _, drawn = json.loads(canonical_text(written(tmp_path, notebook)))["cells"]
    assert drawn["metadata"] == {"jupyter": {"source_hidden": True}, "tags": ["b", "hide-input"]}
    assert "jupyter" not in printed["metadata"]


def test_metadata_of_the_library_is_removed_from_pictures(tmp_path: Path) -> None:
    import io

    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    buffer = io.BytesIO()
    figure, ax = plt.subplots()
    ax.plot([1, 2])
    figure.savefig(buffer, format="png")
    plt.close(figure)
    assert b"Matplotlib" in buffer.getvalue()
    notebook = noisy()
    encoded = base64.b64encode(buffer.getvalue()).decode() + "\n"
    notebook.cells[1].outputs = [nbformat.v4.new_output("display_data", data={"image/png": encoded})]
    data = json.loads(canonical_text(written(tmp_path, notebook)))
    kept = base64.b64decode(data["cells"][1]["outputs"][0]["data"]["image/png"])
    assert b"Matplotlib" not in kept
    assert (plt.imread(io.BytesIO(kept)) == plt.imread(io.BytesIO(buffer.getvalue()))).all()


@pytest.mark.parametrize("text", ["", "not json", "[]", '{"cells": 3}', '{"nbformat": 4}'])
def test_other_files_are_one_message(tmp_path: Path, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "n.ipynb"
    path.write_text(text)
    with pytest.raises(GraderError):
        canonical_text(path)
    assert main([str(path)]) == 2
    assert path.read_text() == text and "Traceback" not in capsys.readouterr().err


def test_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, noisy())
    before = path.read_text()
    assert main(["--check", str(path)]) == 1 and path.read_text() == before
    assert main([str(path)]) == 0 and path.read_text() != before
    assert main(["--check", str(path)]) == 0
    assert main([str(tmp_path / "none.ipynb")]) == 2
    assert "no such notebook" in capsys.readouterr().err


def test_the_source_of_a_question_is_folded(tmp_path: Path) -> None:
    output = nbformat.v4.new_output("execute_result", data=predict("?", 1)._repr_mimebundle_(), execution_count=1)
    notebook = nbformat.v4.new_notebook()
    notebook.cells = [nbformat.v4.new_code_cell("predict('?', 1)", outputs=[output], execution_count=1)]
    (kept,) = json.loads(canonical_text(written(tmp_path, notebook)))["cells"]
    assert kept["metadata"] == {"jupyter": {"source_hidden": True}, "tags": ["hide-input"]}
