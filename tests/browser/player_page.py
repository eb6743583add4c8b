"""A browser for the tests of the player: Debian's chromium, driven by playwright. Without one they are skipped, and say why."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

DESKTOP, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """The browser; closed after the module."""
    api = pytest.importorskip("playwright.sync_api", reason="no playwright here: pip install playwright")
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        pytest.skip("no chromium here: on Debian apt install chromium")
    with api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        yield chromium
        chromium.close()


@pytest.fixture
def opened(browser: Any, tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """``opened(html, viewport, ...)``: a page with that text. At the end nothing may have gone wrong or been asked for."""
    problems: list[str] = []
    contexts = []

    def open_page(text: str, viewport: dict[str, int] | None = None, **options: Any) -> Any:
        context = browser.new_context(viewport=viewport or DESKTOP, **options)
        contexts.append(context)
        page = context.new_page()
        file = tmp_path / f"page{len(contexts)}.html"
        file.write_text(text, encoding="utf-8")
        page.on("console", lambda message: problems.append(f"console: {message.text}"))
        page.on("pageerror", lambda error: problems.append(f"error: {error}"))
        allowed = (file.as_uri(), "about:srcdoc", "data:")
        page.on(
            "request",
            lambda request: (
                problems.append(f"asked for {request.url}") if not request.url.startswith(allowed) else None
            ),
        )
        page.goto(file.as_uri())
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert problems == []
