"""Pages for the tests of the player, in the browser of conftest.py.

A test fails if its page sends a request or writes to the console.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

DESKTOP, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}


@pytest.fixture
def opened(browser: Any, tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """Yield ``opened(html, viewport, ...)``, which opens a page with this HTML.

    After the test, fail if there were console messages, exceptions or requests.
    """
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
                problems.append(f"requested {request.url}") if not request.url.startswith(allowed) else None
            ),
        )
        page.goto(file.as_uri())
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert problems == []
