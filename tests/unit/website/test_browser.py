"""The site in a browser: what nobody could see is found, and the site has none of it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.website.browser import BrowserFailedError, find_browser, unseen

ROOT = Path(__file__).parents[3]
NO_BROWSER = "no Chromium on the PATH, and CHROMIUM names none"
PAGE = """<!DOCTYPE html><head><style>
body {{ margin: 0; background: white; color: #222 }}
[data-md-color-scheme=slate] {{ background: black; color: #ddd }}
{style}
</style></head><body data-md-color-scheme="default"><article>{article}</article></body>"""
GOOD = "<p>Text.</p><pre><code>short</code></pre>"


def problems_of(folder: Path, article: str, style: str = "") -> list[str]:
    browser = find_browser()
    if browser is None:
        pytest.skip(NO_BROWSER)
    (folder / "page.html").write_text(PAGE.format(article=article, style=style), "utf-8")
    return unseen(folder, browser)


@pytest.mark.thorough
def test_a_page_that_can_be_read_is_left_alone(tmp_path: Path) -> None:
    assert problems_of(tmp_path, GOOD) == []


@pytest.mark.thorough
def test_code_that_is_cut_off_and_pages_that_are_too_wide_are_found(tmp_path: Path) -> None:
    code = f"<pre><code>{'x' * 100}</code></pre><div id=wide>w</div>"
    found = problems_of(tmp_path, code, "pre { overflow: auto } #wide { width: 800px }")
    assert [each.partition('"')[0] for each in found] == [
        "/page.html: 390 pixels: code is cut off: ",
        "/page.html: 390 pixels: the page is 800 pixels wide",
    ]


@pytest.mark.thorough
def test_text_that_does_not_stand_out_is_found_in_the_scheme_where_it_does_not(
    tmp_path: Path,
) -> None:
    found = problems_of(tmp_path, "<p>Seen.</p><p id=faint>Hidden.</p>", "#faint { color: #555 }")
    assert len(found) == 2  # for each width
    assert all('slate: contrast 2.82, at least 4.5: "Hidden."' in each for each in found)


@pytest.mark.thorough
def test_an_unknown_page_is_found(tmp_path: Path) -> None:
    if (browser := find_browser()) is None:
        pytest.skip(NO_BROWSER)
    assert "there is no article" in unseen(tmp_path, browser, ["gone.html"])[0]


def test_a_browser_that_ends_is_an_error_and_not_a_site_without_problems(tmp_path: Path) -> None:
    with pytest.raises(BrowserFailedError, match="ended before it had seen the pages"):
        unseen(tmp_path, "true", [])


@pytest.mark.thorough
def test_the_site_is_built_and_every_page_can_be_read() -> None:
    if find_browser() is None:
        pytest.skip(NO_BROWSER)
    made = subprocess.run(
        ["make", "docs", f"PYTHON={sys.executable}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert made.returncode == 0, made.stdout + made.stderr
