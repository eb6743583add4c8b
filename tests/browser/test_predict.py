"""Prediction questions in lessons, answered with the keyboard, on wide and narrow screens."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from grader.report.notebook.prediction import predict
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
    if viewport is DESKTOP:  # on a phone the frame scrolls
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
