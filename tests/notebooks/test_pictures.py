"""Texts in the drawings of lessons do not overlap and are not cut off."""

from __future__ import annotations

import itertools

import matplotlib
import pytest

matplotlib.use("Agg")

import matplotlib.pyplot as plt
from matplotlib.text import Text

import grader.report.notebook as notebook
from grader.report.notebook import style

DRAWINGS = [name for module, names in notebook._HOMES.items() if module.startswith("pictures.") for name in names]


@pytest.mark.parametrize("name", DRAWINGS)
def test_texts_do_not_overlap_and_are_complete(name: str) -> None:
    style.use()
    figure = getattr(notebook, name)()
    figure.canvas.draw()
    renderer = figure.canvas.get_renderer()
    shown = [text for text in figure.findobj(Text) if text.get_visible() and text.get_text().strip()]
    boxes = [(text.get_text(), text.get_window_extent(renderer)) for text in shown]
    assert len(boxes) > 5
    for text, where in boxes:
        assert where.x0 >= 0 and where.y0 >= 0, f"{text!r} is cut off"
        assert where.x1 <= figure.bbox.width and where.y1 <= figure.bbox.height, f"{text!r} is cut off"
    for (one, here), (other, there) in itertools.combinations(boxes, 2):
        assert not here.padded(-1).overlaps(there.padded(-1)), f"{one!r} lies on {other!r}"
    plt.close(figure)
