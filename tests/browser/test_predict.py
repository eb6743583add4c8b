"""Prediction questions in lessons, answered with the keyboard, on wide and narrow screens."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable
from typing import Any

import nbformat
import pytest

from grader.course import Course, Day
from grader.report.notebook.prediction import predict
from grader.setup import shipped
from tests.browser.player_page import DESKTOP, PHONE, opened

__all__ = ["opened"]
Open = Callable[..., Any]
VIEWPORTS = pytest.mark.parametrize("viewport", [DESKTOP, PHONE], ids=["desktop", "phone"])
PAGE = '<!doctype html><html lang="en"><meta name="viewport" content="width=device-width"><title>t</title>{}</html>'


@VIEWPORTS
@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("32", "Exactly right."),
        ("34", "Right, within 6 %."),
        ("40", "Your number is off by 25 %."),
        ("8", "Your number is 4.0 times too small."),
        ("4k", "Your number is 125 times too large."),
        ("1,024", "Your number is 32 times too large."),
    ],
)
def test_a_number(opened: Open, viewport: dict[str, int], given: str, says: str) -> None:
    question = predict("How many sectors does `x[32 * i]` request?", 32, unit="sectors", because="One per lane <&>.")
    page = opened(PAGE.format(question.html()), viewport)
    frame = page.frame_locator("iframe")
    frame.locator("#number").wait_for()
    assert frame.locator("#question code").inner_text() == "x[32 * i]" and frame.locator("#result").is_hidden()
    page.keyboard.press("Tab")
    page.keyboard.type(given)
    page.keyboard.press("Enter")
    said = frame.locator("#result").inner_text()
    assert said == f"{says} The answer: 32 sectors. One per lane <&>."
    assert page.evaluate("document.documentElement.scrollWidth") <= viewport["width"]
    if viewport is DESKTOP:  # only on a desktop; on a phone the frame may scroll
        inside = frame.locator("body").evaluate("body => body.scrollHeight <= window.innerHeight")
        assert inside, "the question is cut off"


@VIEWPORTS
def test_a_choice(opened: Open, viewport: dict[str, int]) -> None:
    question = predict("Which unit limits it?", "memory", choices=["arithmetic", "memory"], because="2 bytes a FLOP.")
    page = opened(PAGE.format(question.html()), viewport)
    frame = page.frame_locator("iframe")
    frame.locator("input").first.wait_for()
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    page.keyboard.press("Enter")
    assert frame.locator("#result").inner_text() == "Not quite. The answer: memory. 2 bytes a FLOP."
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    assert frame.locator("#result").inner_text().startswith("Right.")


def test_an_answer_that_is_not_a_number(opened: Open) -> None:
    page = opened(PAGE.format(predict("How many?", 3).html()))
    frame = page.frame_locator("iframe")
    frame.locator("#number").fill("many")
    frame.locator("button").click()
    assert frame.locator("#result").inner_text() == "Enter a number, such as 32, 1.5e9 or 4k."


def test_without_scripts_the_answer_is_folded_text(opened: Open) -> None:
    page = opened(PAGE.format(predict("How many?", 3, because="A, b and c.").html()), java_script_enabled=False)
    answer = page.locator("details p")
    assert not answer.is_visible()
    page.locator("summary").click()
    assert answer.inner_text() == "3. A, b and c."


def asked(day: Day) -> list[str]:
    """Return the questions of a lesson as the notebook stores them: HTML."""
    cells = nbformat.read(day.lesson, as_version=4).cells
    outputs = [output for cell in cells if "predict(" in cell.source for output in cell.get("outputs", ())]
    return [output.data["text/html"] for output in outputs if "text/html" in output.get("data", {})]


def data_of(question: str) -> dict[str, Any]:
    """Return the data in the frame of a question, such as its answer and its choices."""
    frame = html.unescape(question)
    found = re.search(r'<script id="data" type="application/json">(.*?)</script>', frame, re.DOTALL)
    assert found
    data: dict[str, Any] = json.loads(found[1])
    return data


FITS = "body => [body.scrollWidth <= window.innerWidth, body.scrollHeight <= window.innerHeight]"
"""JavaScript that returns two booleans: whether all of a frame's content is visible in width and in height."""


@pytest.mark.parametrize("day", Course(shipped.COURSE).days, ids=lambda day: day.folder)
def test_a_lesson_is_answered_with_the_keyboard(opened: Open, day: Day) -> None:
    """Tab moves to the next question, Enter shows the comparison, and each answer is fully visible, also on a phone."""
    questions = asked(day)
    assert questions
    page = opened(PAGE.format("".join(questions)))
    frames = [page.frame_locator("iframe").nth(number) for number in range(len(questions))]
    for number, (question, frame) in enumerate(zip(questions, frames)):
        data = data_of(question)
        frame.locator("input").first.wait_for()
        page.keyboard.press("Tab")
        if data["choices"]:
            page.keyboard.press("Space")
            for _ in range(data["choices"].index(data["answer"])):
                page.keyboard.press("ArrowDown")
        else:
            page.keyboard.type(str(data["answer"]))
        page.keyboard.press("Enter")
        assert frame.locator("#result strong").inner_text() in ("Right.", "Exactly right."), data["question"]
        page.keyboard.press("Tab")
        page.keyboard.press("Tab")
        page.keyboard.press("Space")
        assert page.locator("details").nth(number).get_attribute("open") is not None, "Tab does not reach the answer"
        assert frame.locator("body").evaluate(FITS) == [True, True], f"the frame is too small: {data['question']}"
    page.set_viewport_size(PHONE)
    for frame in frames:  # on a phone the frame scrolls down, but not sideways
        assert frame.locator("body").evaluate(FITS)[0], frame.locator("#question").inner_text()
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
