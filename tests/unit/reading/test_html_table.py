from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from pylog.reading.html_table import html_table, shown_time

if TYPE_CHECKING:
    from collections.abc import Iterator


def cells(html: str) -> list[list[str]]:
    rows = re.findall(r"<tr>(.*?)</tr>", html)
    return [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in rows]


def test_a_table_has_its_title_columns_rows_and_notes() -> None:
    html = html_table("Two", ["name", "size"], [("a", 1_234_567), ("b", None)], 2, notes=["done"])
    assert cells(html) == [["name", "size"], ["a", "1,234,567"], ["b", ""]]
    assert "<strong>Two</strong>" in html
    assert "<div>done</div>" in html
    assert "more" not in html


def test_only_the_first_rows_are_asked_for_and_the_others_counted() -> None:
    asked = []

    def rows() -> Iterator[tuple[int]]:
        for number in range(1_000_000):
            asked.append(number)
            yield (number,)

    html = html_table("Many", ["number"], rows(), 1_000_000)
    assert len(cells(html)) == 1 + 20
    assert len(asked) == 20
    assert "<div>… 999,980 more</div>" in html


def test_every_text_is_escaped_and_bounded() -> None:
    hostile = "<script>alert('x')</script>&\udcff"
    html = html_table(hostile, [hostile], [(hostile,)], 1, notes=[hostile, "y" * 10_000])
    assert "<script>" not in html
    assert html.count("&lt;script&gt;alert(&#x27;x&#x27;)&lt;/script&gt;&amp;\\udcff") == 4
    assert "y" * 500 + "…" in html
    assert len(html) < 2_000
    html.encode()  # a lone surrogate could not be sent to a browser


@pytest.mark.parametrize(
    ("milliseconds", "shown"),
    [
        (None, None),
        (0, "1970-01-01 00:00:00"),
        (1_730_999_991_709, "2024-11-07 17:19:51"),
        (-1_000, "1969-12-31 23:59:59"),
        (2**63 - 1, "9223372036854775807 ms"),
        (-(2**63), "-9223372036854775808 ms"),
    ],
)
def test_a_time_is_shown_in_utc_or_as_the_number_that_it_is(
    milliseconds: int | None, shown: str | None
) -> None:
    assert shown_time(milliseconds) == shown
