"""A question that a lesson asks before it shows a number: the reader predicts, then compares."""

from __future__ import annotations

import html
import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from grader.report.notebook.panel import Output
from grader.report.player.page import framed
from grader.setup.errors import GraderError

_PAGE = Path(__file__).with_name("prediction.html")
CLOSE = 0.1
"""The relative distance from the answer up to which a number counts as right."""
_CHARACTERS = 55
"""The number of characters of a line in the frame, an average of wide and narrow screens."""


@dataclass(repr=False, eq=False)
class Prediction(Output):
    """A question with its answer. HTML viewers show a form, others the question and the answer."""

    question: str
    answer: float | str
    unit: str = ""
    choices: Sequence[str] = ()
    because: str = ""

    @property
    def said(self) -> str:
        """The answer with its unit and its derivation."""
        number = self.answer if isinstance(self.answer, str) else _written(self.answer)
        return " ".join(filter(None, [f"{number} {self.unit}".strip().rstrip(".") + ".", self.because]))

    def __str__(self) -> str:
        choices = f" ({' / '.join(self.choices)})" if self.choices else ""
        return f"Predict: {self.question}{choices}\nAnswer: {self.said}"

    def html(self) -> str:
        """Return the form in a sandboxed frame, and the answer folded below it for viewers that drop frames."""
        data = {
            "question": _marked(self.question),
            "answer": self.answer,
            "unit": self.unit,
            "choices": self.choices,
            "said": _marked(self.said),
            "close": CLOSE,
        }
        page = _PAGE.read_text(encoding="utf-8").replace("@data@", json.dumps(data).replace("<", "\\u003c"))
        texts = (
            self.question,
            f"Your number is 4.0 times too small. The answer: {self.said}",
            "    ".join(self.choices),
        )
        height = 90 + 23 * sum(-(-len(text) // _CHARACTERS) for text in texts)
        answer = f"<summary>Answer to: {_marked(self.question)}</summary>\n<p>{_marked(self.said)}</p>"
        return framed(f"Predict: {self.question}", page, height, answer)


def predict(
    question: str,
    answer: float | str,
    *,
    unit: str = "",
    choices: Sequence[str] | None = None,
    because: str = "",
) -> Prediction:
    """Ask the reader for a number or a choice before the lesson shows it.

    In a lesson, the call is the last expression of a cell right before the cell that shows the number. ``answer`` is
    a value that the lesson's cells have computed::

        predict("How many sectors does the strided load request?", sectors, unit="sectors", because="Each lane ...")
        predict("Which unit limits this kernel?", "memory", choices=["memory", "arithmetic"], because="...")

    Args:
        question: one or two sentences; ``code`` in backticks.
        answer: the number, or one of ``choices``. A prediction within 10 % of a number counts as right.
        unit: the unit of the number.
        choices: the choices, if the answer is not a number.
        because: the derivation, one to three sentences.

    Raises:
        GraderError: the answer is not among the choices, or is neither finite nor a choice.
    """
    if choices is not None and answer not in choices:
        raise GraderError(f"the answer {answer!r} is not among the choices", f"Choices: {', '.join(choices)}.")
    if choices is None:
        try:
            answer = float(answer)
        except (TypeError, ValueError):
            raise GraderError(
                f"the answer {answer!r} is not a number", "Pass choices= for an answer in words."
            ) from None
        if not math.isfinite(answer):
            raise GraderError(f"the answer {answer} is not finite", "Compute it from the lesson's own values.")
    return Prediction(question, answer, unit, choices or (), because)


def _written(number: float) -> str:
    """Return a number with at most four significant digits, or all digits of an integer."""
    return f"{number:,.0f}" if number == int(number) and abs(number) < 1e15 else f"{number:,.4g}"


def _marked(text: str) -> str:
    """Return a text as HTML, with ``code`` in backticks."""
    return re.sub(r"`+([^`]+)`+", r"<code>\1</code>", html.escape(text, quote=False))
