from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.website.__main__ import warnings_of
from tests.website.built_links import broken_links

if TYPE_CHECKING:
    from pathlib import Path

SOUND = {
    "index.html": '<a href="guide/a.html#one">a</a><a href="https://kafka.apache.org/">Kafka</a>'
    '<img src="a.svg"><link rel="canonical" href="https://example.org/">',
    "guide/a.html": '<h2 id="one">One</h2><a href="../index.html">up</a><a href="#one">one</a>',
    "404.html": '<a href="/index.html">start</a>',
    "a.svg": "<svg/>",
}


@pytest.fixture
def site(tmp_path: Path) -> Path:
    for name, text in SOUND.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def test_nothing_is_wrong_with_links_that_lead_somewhere(site: Path) -> None:
    assert list(broken_links(site)) == []


@pytest.mark.parametrize(
    ("element", "problem"),
    [
        ('<a href="gone.html">', "gone.html leads nowhere"),
        ('<a href="guide/a.html#two">', "guide/a.html#two names no place on that page"),
        ('<a href="#nowhere">', "#nowhere names no place on that page"),
        ('<img src="b.svg">', "b.svg leads nowhere"),
        ('<script src="https://cdn.example/a.js">', "is loaded from another host"),
        ('<link rel="stylesheet" href="//fonts.example/a.css">', "is loaded from another host"),
    ],
)
def test_what_is_broken_is_named_with_its_page(site: Path, element: str, problem: str) -> None:
    (site / "b.html").write_text(element)
    [found] = broken_links(site)
    assert found.startswith("b.html: ")
    assert problem in found


def test_every_line_of_the_generator_is_a_warning_but_those_that_are_expected() -> None:
    expected = "griffe: Unsupported item in pylog.__all__: names (use strings only)\n"
    assert warnings_of(f"{expected}No issues found\n") == []
    assert warnings_of(f"{expected}Warning: page does not exist\n   index.md:3:1\n") == [
        "Warning: page does not exist",
        "   index.md:3:1",
    ]
