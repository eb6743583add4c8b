"""Prediction questions in lessons: their text without HTML, and invalid answers."""

from __future__ import annotations

import pytest

from grader.report.notebook import predict
from grader.setup.errors import GraderError


def test_as_text() -> None:
    asked = predict("How many bytes?", 4096 * 4, unit="bytes", because="Four per element.")
    assert str(asked) == "Predict: How many bytes?\nAnswer: 16,384 bytes. Four per element."
    assert str(predict("Which?", "a", choices=["a", "b"])) == "Predict: Which? (a / b)\nAnswer: a."
    assert str(predict("How much?", 0.123456)) == "Predict: How much?\nAnswer: 0.1235."


def test_the_same_question_gives_the_same_output() -> None:
    first, second = (predict("How many?", 3)._repr_mimebundle_() for _ in range(2))
    assert first == second and set(first) == {"text/plain", "text/html"}


def test_texts_are_escaped() -> None:
    html = predict("</script><b>?", 3, because='"</iframe>').html()
    assert "</script><b>" not in html and '"</iframe>' not in html


@pytest.mark.parametrize(
    ("answer", "choices", "says"),
    [(float("nan"), None, "not finite"), ("many", None, "not a number"), ("c", ["a", "b"], "not among the choices")],
)
def test_a_wrong_answer_is_refused(answer: float | str, choices: list[str] | None, says: str) -> None:
    with pytest.raises(GraderError, match=says):
        predict("How many?", answer, choices=choices)
