"""A day's page: its notebook with the outputs that it keeps, and the day's exercises behind it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import nbformat

from grader.book.links import Links, relative
from grader.course import Day

FOLD = "hide-input"
"""The tag of a cell whose code is folded: Jupyter Book and myst-nb know it. An author may set it, too."""
DRAWING = {"plt", "ax", "axes", "style"}


def page(text: str, path: str, links: Links, day: Day | None) -> str:
    """The notebook ``text``, as JSON, made ready for the book; ``path``: where it lies, from the course's folder."""
    notebook = nbformat.reads(text, as_version=4)
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.source = links.rewrite(cell.source, path)
        elif cell.cell_type == "code" and only_draws(cell):
            cell.metadata["tags"] = sorted({*cell.metadata.get("tags", []), FOLD})
    if day and day.exercises:
        notebook.cells.append(nbformat.v4.new_markdown_cell(_exercises(day, path), id="exercises-of-the-day"))
    return str(nbformat.writes(notebook))


def only_draws(cell: nbformat.NotebookNode) -> bool:
    """Whether a cell shows a picture and at least half of its lines draw it: call matplotlib, or a function ``draw...``."""
    if not any("image/png" in output.get("data", {}) for output in cell.outputs):
        return False
    try:
        statements = list(_simple(ast.parse(cell.source)))
    except SyntaxError:  # a magic of IPython
        return False
    drawing = set(DRAWING)
    lines = {True: 0, False: 0}
    for statement in statements:
        names = {node.id: node for node in ast.walk(statement) if isinstance(node, ast.Name)}
        if isinstance(statement, ast.Assign) and "plt" in names:  # figure, (left, right) = plt.subplots(1, 2)
            drawing |= {name for name, node in names.items() if isinstance(node.ctx, ast.Store)}
        draws = bool(drawing & names.keys()) or any(name.startswith("draw") for name in names)
        lines[draws] += (statement.end_lineno or statement.lineno) - statement.lineno + 1
    return lines[True] >= lines[False]


def _simple(tree: ast.AST) -> Iterator[ast.stmt]:
    """The statements that hold no other statements, docstrings aside, in the order in which they stand."""
    for node in ast.iter_child_nodes(tree):
        if hasattr(node, "body") and not isinstance(node, ast.expr):
            yield from _simple(node)
        elif isinstance(node, ast.stmt) and not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
            yield node


def _exercises(day: Day, path: str) -> str:
    lines = ["## The day's exercises, each on its page", "", "| exercise | kind | points |", "| --- | --- | ---: |"]
    pages = [relative(f"exercises/{entry.name}.md", path) for entry in day.exercises]
    for entry, target in zip(day.exercises, pages):
        lines.append(f"| [{entry.title}]({target}) | {entry.kind} | {entry.points} |")
    return "\n".join([*lines, "", "```{toctree}", ":hidden:", "", *pages, "```"])
