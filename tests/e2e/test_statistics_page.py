"""The page of ``pylog stats`` in a real browser: laid out, and no wider than its window."""

from __future__ import annotations

import re
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

import pylog
from tests.support.batches import Stored, batch_v2
from tests.support.log_files import write_partition

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.e2e

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
SECONDS = 60
HOUR_MS = 3_600_000
LONG_NAME = "a-topic-with-a-name-as-long-as-those-that-no-line-break-helps-" * 3
MEASURE = """<script>
const first = document.querySelector('.bars svg').getBoundingClientRect();
document.body.setAttribute('data-measured', [innerWidth, document.documentElement.scrollWidth,
Math.round(first.width), Math.round(first.height)].join(' '));
</script>"""


@pytest.fixture(scope="module")
def browser() -> str:
    for name in BROWSERS:
        if found := shutil.which(name):
            return found
    pytest.skip(f"no browser here: none of {', '.join(BROWSERS)}")


@pytest.fixture
def page(tmp_path: Path) -> Path:
    for topic in ("orders", LONG_NAME):
        for partition in range(2):
            batches = [
                batch_v2([Stored(at, 10**12 + at * HOUR_MS, LONG_NAME.encode(), b"v" * 99 * at)])
                for at in range(50)
            ]
            write_partition(tmp_path / "logs", {0: batches}, name=f"{topic}-{partition}")
    html = pylog.stats(tmp_path / "logs", read="all").html()
    path = tmp_path / "page.html"
    path.write_text(html.replace("</body>", f"{MEASURE}</body>"), "utf-8")
    return path


@pytest.mark.parametrize("width", [500, 1280])
def test_the_page_fits_its_window(width: int, page: Path, browser: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [
            *(browser, "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"),
            *(f"--window-size={width},900", f"--user-data-dir={tmp_path / 'profile'}"),
            page.as_uri(),
        ],
        check=True,
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    found = re.search(r'data-measured="(\d+) (\d+) (\d+) (\d+)"', done.stdout)
    assert found is not None
    inner, scroll, bar_width, bar_height = map(int, found.groups())
    assert inner == width
    assert scroll <= width
    assert bar_width >= 50
    assert bar_height == 14
