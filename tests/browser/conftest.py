"""A browser for tests: Debian's chromium, driven by Playwright.

Without chromium or the optional dependencies the tests are skipped with the reason. A test fails if its page writes an
error to the console or sends a request to another host.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

_BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
CHROMIUM = next(filter(None, map(shutil.which, _BROWSERS)), None)
LACKING = [name for name in ("playwright", "axe_playwright_python") if importlib.util.find_spec(name) is None]
DESKTOP, PHONE = (1280, 800), (390, 844)
SECONDS = 180
"""The timeout of every wait. It is long, because the machine may be busy."""


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Yield one browser for all tests of a process."""
    if LACKING:
        pytest.skip(f"not installed: {', '.join(LACKING)}: pip install -c constraints.txt -e '.[browser]'")
    if CHROMIUM is None:
        pytest.skip("chromium is not on the PATH (Debian, Ubuntu: apt install chromium)")
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=1000 * SECONDS)
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []  # chromium's sandbox does not work for root
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(
            executable_path=CHROMIUM, args=[*arguments, "--disable-dev-shm-usage"], timeout=1000 * SECONDS
        )
        yield started
        started.close()


OpenPage = Callable[..., "Page"]


@pytest.fixture
def open_page(browser: Browser) -> Iterator[OpenPage]:
    """Return a function that opens a page with a viewport size, ``DESKTOP`` or ``PHONE``.

    After the test, fail if any page logged an error, raised an exception or sent a request to another host.
    """
    faults: list[str] = []
    contexts = []

    def opened(size: tuple[int, int] = DESKTOP, **options: Any) -> Page:
        context = browser.new_context(viewport={"width": size[0], "height": size[1]}, **options)
        contexts.append(context)
        context.set_default_timeout(1000 * SECONDS)
        context.on("request", lambda request: faults.extend(outside(request.url)))
        page = context.new_page()
        page.on("console", lambda said: faults.append(f"console: {said.text}") if said.type == "error" else None)
        page.on("pageerror", lambda error: faults.append(f"exception: {error}"))
        return page

    yield opened
    for context in contexts:
        context.close()
    assert not faults, "\n".join(dict.fromkeys(faults))


def tab_to(page: Page, selector: str, key: str = "Tab") -> None:
    """Press Tab, or Shift+Tab, until an element has the focus, in the page or in a frame of it."""
    for _ in range(100):
        page.keyboard.press(key)
        if any(frame.locator(f"{selector}:focus").count() for frame in page.frames):
            return
    raise AssertionError(f"pressing {key} 100 times does not reach {selector}")


def outside(url: str) -> list[str]:
    """Return a message if a request goes to another host, otherwise nothing."""
    parts = urlsplit(url)
    inside = parts.scheme in ("file", "data", "blob", "about") or parts.hostname in ("localhost", "127.0.0.1")
    return [] if inside else [f"request: {url}"]


def violations(page: Page, without: str = "") -> list[str]:
    """Return axe-core's serious and critical findings, one line each.

    ``without`` is a selector for parts of the page to exclude.
    """
    from axe_playwright_python.sync_playwright import Axe

    context = {"exclude": [[without]]} if without else None
    found = (
        Axe()
        .run(page, context=context, options={"resultTypes": ["violations"], "preload": False})
        .response["violations"]
    )
    return [
        f"{rule['id']}: {node['target']} {node['html'][:160]} {node['failureSummary'][:300]}"
        for rule in found
        if rule["impact"] in ("serious", "critical")
        for node in rule["nodes"]
    ]


def file_url(path: Path) -> str:
    """Return the URL of a file."""
    return path.resolve().as_uri()
