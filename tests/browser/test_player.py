"""The player in a browser: buttons, keys, the slider and findings.

The tests use wide and narrow screens, and a frame.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
import torch

from grader.report.player import page as player
from tests.browser.player_page import DESKTOP, PHONE, opened
from tests.report.player.recordings import kernel, record

__all__ = ["opened"]
Open = Callable[..., Any]


@pytest.fixture(scope="module")
def races() -> str:
    return player.page(*record("races", torch.arange(64.0)))


def step_of(page: Any) -> int:
    found = re.match(r"Step (\d+) of \d+: ", page.inner_text("#summary"))
    assert found
    return int(found[1])


def scrub(page: Any, to: int) -> None:
    page.locator("#scrub").fill(str(to))


def last_step(page: Any) -> int:
    return int(page.get_attribute("#scrub", "max"))


@pytest.mark.parametrize("viewport", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_step_scrub_and_jump(opened: Open, races: str, viewport: dict[str, int]) -> None:
    page = opened(races, viewport)
    assert step_of(page) == 1 and page.is_disabled("#back") and page.is_disabled("#first")
    page.click("#next")
    page.click("#next")
    assert step_of(page) == 3
    page.click("#back")
    assert step_of(page) == 2
    scrub(page, last_step(page))
    assert step_of(page) == last_step(page) and page.is_disabled("#next")
    page.click("#first")
    assert step_of(page) == 1
    sides = page.locator("#findings button")
    assert sides.count() == 2 and "racecheck" in page.inner_text("#findings")
    said = []
    for side in range(2):
        sides.nth(side).click()
        said.append(page.inner_text("#summary"))
        assert page.inner_text(".source li.now").strip().split("\n")[0].strip() in " ".join(said)
    assert "read part[" in said[0] + said[1] and "write part[" in said[0] + said[1]
    assert "32 words not yet written" in said[0]  # warp 1 has not yet written its 32 words
    # The page does not scroll sideways.
    assert page.evaluate("document.documentElement.scrollWidth") <= viewport["width"]


def test_keys_and_focus(opened: Open, races: str) -> None:
    page = opened(races)
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowLeft")
    assert step_of(page) == 2
    page.keyboard.press("End")
    assert step_of(page) == last_step(page)
    page.keyboard.press("Home")
    assert step_of(page) == 1
    # Tab reaches all controls, and the focused one is highlighted.
    names = []
    for _ in range(12):
        page.keyboard.press("Tab")
        names.append(page.evaluate("document.activeElement.id || document.activeElement.className"))
        assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none"
    assert names[:5] == ["play", "next", "last", "scrub", "speed"]
    page.focus("#scrub")
    page.keyboard.press("ArrowRight")
    assert step_of(page) == 2
    # At the last step, the focused button becomes disabled, so the focus moves to another button.
    page.focus("#last")
    page.keyboard.press("Enter")
    assert step_of(page) == last_step(page)
    assert page.evaluate("document.activeElement.id") == "back"


def test_playing_and_pausing(opened: Open, races: str) -> None:
    page = opened(races, reduced_motion="reduce")
    page.select_option("#speed", "60")
    page.keyboard.press("Escape")
    page.click("#play")
    assert page.get_attribute("#summary", "aria-live") == "off"
    page.locator("#play:text-is('Play')").wait_for()  # playing stops at the last step
    assert step_of(page) == last_step(page)
    assert page.get_attribute("#summary", "aria-live") == "polite"


def test_waiting_warps_and_read_values(opened: Open) -> None:
    recording, source, findings = record("waits", torch.arange(96.0))
    page = opened(player.page(recording, source, findings))
    done = next(number for number, event in enumerate(recording.events, 1) if event.kind == "barrier_complete")
    scrub(page, done - 1)
    rows = page.locator("#warps tr").all_inner_texts()
    assert len(rows) == 3 and all("waits at __syncthreads, line 23" in row for row in rows)
    scrub(page, done)
    assert not any("waits" in row for row in page.locator("#warps tr").all_inner_texts())
    assert page.get_attribute("#shared canvas", "aria-label") == "part: 32 of 32 words are written"
    page.click("#first")
    page.click("#barrier")
    assert step_of(page) == done
    page.locator(".source button", has_text="22").click()
    assert "line 22" in page.inner_text("#summary")


@pytest.mark.parametrize(
    ("name", "size", "said", "boxes"),
    [
        ("coalesced", 128, "4 sectors, the minimum", 32),
        ("strided", 256, "32 sectors, minimum 4", 32),
        ("conflicts", 0, "32 wavefronts, minimum 1: a 32-way bank conflict", 32),
    ],
)
def test_sectors_and_banks(opened: Open, name: str, size: int, said: str, boxes: int) -> None:
    inputs = [torch.zeros(size)] if size else []
    recording, source, findings = record(name, *inputs, torch.zeros(128))
    page = opened(player.page(recording, source, findings))
    kinds = [event.kind for event in recording.events]
    scrub(page, 1 + (kinds.index("write") if name == "conflicts" else kinds.index("read")))
    assert said in page.inner_text("#request-text") and said in page.inner_text("#summary")
    assert page.locator("#request .hit, #request .many").count() == boxes


@pytest.mark.parametrize("name", ["widths", "conflicts", "waits", "diverges"])
def test_costs_are_the_counters_of_the_simulator(opened: Open, name: str) -> None:
    """Compare wavefronts, ideal wavefronts and sectors for each line."""
    recording, source, findings = record(name, torch.zeros(128))
    report = kernel().report
    page = opened(player.page(recording, source, findings))
    said: dict[int, list[int]] = {}
    for step, event in enumerate(recording.events, 1):
        scrub(page, step)
        found = re.search(r": (\d+) (sector|wavefront)s?, (?:minimum (\d+))?", page.inner_text("#summary"))
        if found:
            many, few = int(found[1]), int(found[3] or found[1])
            sums = said.setdefault(event.line, [0, 0, 0, 0])
            place = 0 if found[2] == "sector" else 2
            sums[place] += many
            sums[place + 1] += few
    assert said == {
        line.line: [line.sectors, line.ideal_sectors, line.shared_wavefronts, line.ideal_shared_wavefronts]
        for line in report.lines
        if line.sectors or line.shared_wavefronts
    }


def test_scrubbing_back_shows_the_earlier_state(opened: Open) -> None:
    """A step shows the same state after a jump back as after playing from the start, also with 5,000 steps."""
    recording, source, findings = record("copies", torch.arange(256.0), torch.zeros(64))
    long, text, found = record("endless", torch.zeros(128), 500)
    page = opened(player.page(recording, source, findings))

    def state(step: int) -> list[str]:
        scrub(page, step)
        return [
            page.inner_text("#summary"),
            page.inner_text("#warps"),
            page.get_attribute("#shared canvas", "aria-label"),
        ]

    forward = [state(step) for step in range(1, last_step(page) + 1)]
    assert [state(step) for step in range(last_step(page), 0, -1)] == forward[::-1]
    assert "a copy" not in forward[0][0] and any("receive copied data" in said for said, _, _ in forward)
    page = opened(player.page(long, text, found))
    assert "are not shown" in page.inner_text("#about")
    scrub(page, 4990)
    there = page.inner_text("#warps")
    for step in (10, 3000, 4989):
        scrub(page, step)
    page.click("#next")
    assert step_of(page) == 4990 and page.inner_text("#warps") == there


def test_in_a_frame_of_a_page(opened: Open) -> None:
    framed = player.frame(*record("races", torch.arange(64.0)))
    page = opened(f"<!doctype html><title>notebook</title><body>{framed}</body>")
    frame = page.frame_locator("iframe")
    frame.locator("#next").click()
    assert frame.locator("#summary").inner_text().startswith("Step 2 of ")
    assert "racecheck" in page.inner_text("details pre") or page.locator("details pre").count() == 1


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_accessibility(opened: Open, races: str, scheme: str) -> None:
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="axe is not installed: pip install axe-playwright-python"
    )
    page = opened(races, color_scheme=scheme)
    for step in (1, 3, 5):
        scrub(page, step)
        found = axe.Axe().run(page).response["violations"]
        assert [(item["impact"], item["id"]) for item in found if item["impact"] in ("serious", "critical")] == []
