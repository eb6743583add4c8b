"""The book in a browser, in desktop and phone sizes: navigation works and no request leaves the machine."""

from __future__ import annotations

import re
from pathlib import Path

import nbformat
import pytest

from grader.course import Course
from grader.report.book.site import build, missing
from grader.report.notebook import predict, show_source
from tests.browser.conftest import DESKTOP, PHONE, OpenPage, file_url, tab_to, violations
from tests.course_copy import copy_course

pytestmark = pytest.mark.skipif(
    bool(missing()), reason=f"not installed: {', '.join(missing())}; run `make book` to install the book's dependencies"
)
SIZES = pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desk", "phone"])
EXERCISE = "exercises/day02_reductions/softmax.html"
LESSON = "lessons/day02_reductions/lesson.html"
PAGES = ["index.html", LESSON, EXERCISE, "lessons/glossary.html", "files/lessons/day02_reductions/softmax.cu.html"]


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the book with the first two days; all other pages are generated in the same way."""
    root = copy_course(tmp_path_factory.mktemp("course"))
    listed = root / "exercises" / "course.toml"
    text = listed.read_text()
    starts = [found.start() for found in re.finditer(r"^\[\[day\]\]", text, re.MULTILINE)]
    listed.write_text(text[: starts[2]])
    for lesson in root.glob("lessons/*/lesson.ipynb"):
        if not lesson.parent.name.startswith(("day01", "day02")):
            lesson.unlink()
    lesson = root / LESSON.replace(".html", ".ipynb")
    notebook = nbformat.read(lesson, as_version=4)
    asked = predict("How many `bytes` are moved?", 3 * 4.0, unit="MB", because="Three tensors of 2^20 elements.")
    output = nbformat.v4.new_output("execute_result", data=asked._repr_mimebundle_(), execution_count=1)
    notebook.cells.insert(
        1, nbformat.v4.new_code_cell("predict(...)", outputs=[output], metadata={"tags": ["hide-input"]})
    )
    solution = show_source(root / "solutions/day02_reductions/softmax.cu", folded="After you have solved it")
    output = nbformat.v4.new_output("execute_result", data=solution._repr_mimebundle_(), execution_count=2)
    notebook.cells.insert(2, nbformat.v4.new_code_cell("show_source(...)", outputs=[output]))
    notebook.cells.insert(3, nbformat.v4.new_markdown_cell(f"$$s = {' + '.join(f'x_{{{i}}}' for i in range(30))}$$"))
    nbformat.write(notebook, lesson)
    for page in root.glob("lessons/*.md"):
        page.write_text(without_links(page.read_text()))
    for lesson in root.glob("lessons/*/lesson.ipynb"):
        notebook = nbformat.read(lesson, as_version=4)
        for cell in notebook.cells:
            cell.source = without_links(cell.source) if cell.cell_type == "markdown" else cell.source
        nbformat.write(notebook, lesson)
    return build(Course(root), root / "build").parent


def without_links(text: str) -> str:
    """Return a page's text without its links to lessons that this book lacks."""
    return re.sub(r"\[([^\]]+)\]\((?:\.\./)?(?:day(?!0[12])|can_|bring_)[^)]*\)", r"\1", text)


@SIZES
def test_navigation_by_clicks(open_page: OpenPage, book: Path, size: tuple[int, int]) -> None:
    from playwright.sync_api import expect

    page = open_page(size)
    page.goto(file_url(book / "index.html"))
    if size == PHONE:  # on a phone, the sidebar opens with a button
        page.locator("label[for='__navigation']:visible").first.click()
    page.locator(".sidebar-tree").get_by_role("link", name=re.compile("Day 2")).click()
    expect(page).to_have_url(re.compile(re.escape(LESSON)))
    expect(page.locator("mjx-container").first).to_be_visible()
    assert page.locator("mjx-merror").count() == 0
    expect(page.locator("body")).not_to_contain_text(re.compile(r"\\\\frac|\$\$"))
    page.locator("article").get_by_role("link", name="Softmax, online").click()
    expect(page).to_have_url(re.compile(re.escape(EXERCISE)))
    hints = page.locator("article details:has(summary:text-matches('^Hint'))")
    expect(hints).to_have_count(3)
    for number in range(3):
        hint = hints.nth(number)
        expect(hint.locator("p").first).to_be_hidden()
        hint.locator("summary").click()
        expect(hint.locator("p").first).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), "the page scrolls sideways"


@SIZES
def test_the_front_page_begins_with_a_question_and_a_block(
    open_page: OpenPage, book: Path, size: tuple[int, int]
) -> None:
    from playwright.sync_api import expect

    page = open_page(size)
    page.goto(file_url(book / "index.html"))
    asked, block = page.locator("figure.question iframe"), page.locator("figure.block iframe")
    assert asked.bounding_box()["y"] < block.bounding_box()["y"] < page.locator("article table").bounding_box()["y"]
    if size == DESKTOP:
        assert block.bounding_box()["y"] < size[1] - 200, "the block's controls must be on the first screen"
    asked.content_frame.locator("#number").fill("1.135")
    asked.content_frame.get_by_role("button", name="Compare").click()
    expect(asked.content_frame.get_by_role("status")).to_contain_text("The answer: 1.135")
    block.scroll_into_view_if_needed()
    block.content_frame.get_by_role("button", name="Step", exact=True).click()
    expect(block.content_frame.locator("body")).to_contain_text("Step 2 of ")
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), "the page scrolls sideways"


@SIZES
def test_a_prediction_by_keyboard(open_page: OpenPage, book: Path, size: tuple[int, int]) -> None:
    from playwright.sync_api import expect

    page = open_page(size)
    page.goto(file_url(book / LESSON))
    asked = page.frame_locator("iframe[title='Predict: How many `bytes` are moved?']")
    tab_to(page, "#number")
    page.keyboard.type("6")
    page.keyboard.press("Enter")
    says = "Your number is 2.0 times too small. The answer: 12 MB. Three tensors of 2^20 elements."
    expect(asked.get_by_role("status")).to_have_text(says)
    tab_to(page, "summary")
    answer = page.locator("details:has(> summary:text('How many bytes are moved?'))")
    page.keyboard.press("Enter")
    expect(answer.get_by_text("Three tensors of 2^20 elements.")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), "the page scrolls sideways"


@SIZES
def test_a_folded_solution_by_keyboard(open_page: OpenPage, book: Path, size: tuple[int, int]) -> None:
    from playwright.sync_api import expect

    page = open_page(size)
    page.goto(file_url(book / LESSON))
    solution = page.locator("details:has(> summary:text('After you have solved it'))")
    expect(solution.locator("pre")).to_be_hidden()
    tab_to(page, "summary:text('After you have solved it')")
    page.keyboard.press("Enter")
    expect(solution.locator("pre")).to_contain_text("softmax_f32")
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), "the page scrolls sideways"


@SIZES
def test_search(open_page: OpenPage, book: Path, size: tuple[int, int]) -> None:
    from playwright.sync_api import expect

    page = open_page(size)
    page.goto(file_url(book / "index.html"))
    if size == PHONE:
        page.locator("label[for='__navigation']:visible").first.click()
    page.locator(".sidebar-search").fill("coalesced")
    page.locator(".sidebar-search").press("Enter")
    found = page.locator("#search-results li a")
    expect(found.first).to_be_visible()
    found.get_by_text("Day 1").first.click()
    expect(page).to_have_url(re.compile("day01_residual_add/lesson.html"))


SQUEEZED = """() => [...document.querySelectorAll('article table.docutils td')]
    .filter(cell => cell.innerText.length > 60 && cell.clientWidth < 200).map(cell => cell.innerText)"""
"""JavaScript that returns the texts of table cells that are too narrow for their length."""


def test_wide_parts_on_a_phone(open_page: OpenPage, book: Path) -> None:
    """Wide formulas and pictures scroll on their own, also by keyboard. No table cell is too narrow for its text."""
    page = open_page(PHONE)
    for lesson, part in (("day02_reductions", "div.math"), ("day01_residual_add", "div.picture")):
        page.goto(file_url(book / "lessons" / lesson / "lesson.html"))
        page.wait_for_function("MathJax.startup && MathJax.startup.promise && MathJax.startup.promise.then(() => true)")
        wide = page.locator(part).first
        assert wide.evaluate("each => each.scrollWidth > each.clientWidth && each.clientWidth < innerWidth")
        wide.focus()
        page.keyboard.press("ArrowRight")
        page.wait_for_function("document.activeElement.scrollLeft > 0")
        assert page.evaluate(SQUEEZED) == []
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), "the page scrolls sideways"
    image = page.locator("div.picture img").first
    assert image.evaluate("each => each.decode().then(() => each.clientWidth >= each.naturalWidth)")


CUT_OFF = """() => [...document.querySelectorAll('article pre')].filter(listing => {
    const columns = Math.max(...listing.innerText.split('\\n').map(line => line.length));
    return listing.checkVisibility() && columns <= 105 && listing.scrollWidth > listing.clientWidth + 1;
}).map(listing => listing.innerText.slice(0, 200))"""
"""JavaScript that returns the beginnings of listings that scroll sideways although no line has over 105 columns."""


@pytest.mark.parametrize("width", [1280, 1440, 1920])
def test_a_desktop_shows_listings_in_full(open_page: OpenPage, book: Path, width: int) -> None:
    page = open_page((width, 900))
    for name in PAGES:
        page.goto(file_url(book / name))
        assert page.evaluate(CUT_OFF) == []
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), f"{name} scrolls sideways"


LEAVE_THREE = """for (const kind of ['.highlight', 'mjx-container'])
    [...document.querySelectorAll(kind)].slice(3).forEach(each => each.remove())"""
"""JavaScript that removes all but three listings and three formulas from a page before axe-core checks it.

A page has hundreds of them, all generated in the same way, and axe-core is slow for each word in them.

"""


@SIZES
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_accessibility(open_page: OpenPage, book: Path, size: tuple[int, int], theme: str) -> None:
    if (size, theme) == (PHONE, "dark"):
        pytest.skip("the dark colors are the same on a phone")
    page = open_page(size, color_scheme=theme)
    found = []
    for name in PAGES:
        page.goto(file_url(book / name))
        page.wait_for_function(
            "!window.MathJax || !MathJax.startup || !MathJax.startup.promise || MathJax.startup.promise.then(() => "
            "true)"
        )
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), f"{name} scrolls sideways"
        page.evaluate(LEAVE_THREE)
        found += [f"{name}: {violation}" for violation in violations(page)]
    assert not found, "\n".join(found)
