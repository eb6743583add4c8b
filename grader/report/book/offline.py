"""Checks of a built site: it loads nothing from other servers, and no internal link is broken."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADING = {"src", "srcset", "poster", "data", "background", "xlink:href", "action", "formaction"}
REMOTE = re.compile(r"\s*(?:[a-z][a-z0-9+.-]*:)?//", re.IGNORECASE)
IN_CSS = re.compile(r"""(?:url\(\s*["']?|@import\s+["'])((?:[a-z]+:)?//[^"')\s]*)""", re.IGNORECASE)
IN_JS = re.compile(
    r"""(?:\b(?:fetch|import|importScripts|Worker|sendBeacon|EventSource|WebSocket)\s*\(\s*|\.open\s*\(\s*["']\w+["']\s*,\s*"""
    r"""|\.(?:src|action)\s*=\s*|\bfrom\s*|\bimport\s*)["'`]((?:https?:|wss?:)?//[^"'`\s]*)"""
)


def problems(folder: Path) -> list[str]:
    """Return a sentence for each problem of the site in a folder."""
    pages = {path: _read(path) for path in sorted(folder.rglob("*.html"))}
    found = []
    for path, page in pages.items():
        name = path.relative_to(folder)
        found += [f"{name} loads {url}" for url in page.loaded]
        found += [f"{name} {fault}" for url in page.links if (fault := _broken(url, path, folder, pages))]
    for path in sorted(folder.rglob("*.css")):
        found += [f"{path.relative_to(folder)} loads {url}" for url in IN_CSS.findall(path.read_text(encoding="utf-8"))]
    for path in sorted(folder.rglob("*.js")):
        found += [f"{path.relative_to(folder)} loads {url}" for url in IN_JS.findall(path.read_text(encoding="utf-8"))]
    return found


def _read(path: Path) -> _Page:
    page = _Page()
    page.feed(path.read_text(encoding="utf-8"))
    return page


def _broken(url: str, page: Path, folder: Path, pages: dict[Path, _Page]) -> str:
    """Return the problem of a link or a loaded file; empty if there is none."""
    parts = urlsplit(url)
    if parts.scheme or parts.netloc:
        return ""
    target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
    if not target.is_relative_to(folder.resolve()) and target != page:
        return f"is outside of the site: {url}"
    target = folder / target.relative_to(folder.resolve()) if target != page else page
    if not target.is_file():
        return f"links to a missing file: {url}"
    if parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].places:
        return f"links to a missing anchor: {url}"
    return ""


class _Page(HTMLParser):
    """The resources, links and anchors of one page."""

    def __init__(self) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.links: list[str] = []
        self.places: set[str] = {"", "top"}
        self._inside = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._inside = tag
        for name, value in attrs:
            if not value:
                continue
            if name == "id" or (name == "name" and tag == "a"):
                self.places.add(value)
            elif name == "style":
                self.loaded += IN_CSS.findall(value)
            elif name in LOADING or (name == "href" and tag not in ("a", "area")):
                if REMOTE.match(value):
                    self.loaded.append(value)
                elif name != "srcset":
                    self.links.append(value)
            elif name == "href":
                self.links.append(value)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self._inside = ""

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside == "style":
            self.loaded += IN_CSS.findall(data)
        elif self._inside == "script":
            self.loaded += IN_JS.findall(data)
