"""The page: well-formed, complete in itself, and safe whatever topics and keys are called."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any

import pytest

import pylog
from pylog.statistics.page import statistics_page
from tests.support.batches import Stored, batch_v2, message, plain_records
from tests.support.log_files import segment_path, write_partition

if TYPE_CHECKING:
    from pathlib import Path

VOID = {"meta", "br", "img", "link", "input", "hr"}
HOSTILE = "<script>alert(1)</script>\"'&\u202eevil\x1b[31m\ud800"
NOW_MS = 1_700_000_000_000


class Page(HTMLParser):
    """Takes a page apart: what is open, what was found, and what is said."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


@pytest.fixture
def log_directory(tmp_path: Path) -> Path:
    for number_ in range(3):
        batches = [
            batch_v2([Stored(at, NOW_MS + 1_000_000 * at, b"<b>key</b>", b"v" * 300)], codec=codec)
            for at, codec in enumerate(("none", "zstd", "gzip", "none", "lz4"))
        ]
        write_partition(tmp_path, {0: batches}, name=f"orders-{number_}")
    write_partition(tmp_path, {0: [message(Stored(0, -1, b"\xff", b"v"), magic=0)]}, name="old-0")
    write_partition(tmp_path, {0: [batch_v2([Stored(0, 2**62, None, b"v")])]}, name="future-0")
    write_partition(tmp_path, {0: []}, name="empty-0")
    return tmp_path


@pytest.mark.parametrize("read", ["headers", "sample", "all"])
def test_a_page_is_well_formed_and_refers_to_nothing(read: str, log_directory: Path) -> None:
    (log_directory / "cleaner-offset-checkpoint").write_text("0\n1\norders 0 1\n")
    page = Page(source := pylog.stats(log_directory, read=read).html())
    assert {tag for tag, _ in page.tags} >= {"html", "head", "title", "style", "svg", "table"}
    assert not {"script", "img", "link", "iframe", "object", "use", "image"} & {
        tag for tag, _ in page.tags
    }
    for _, attributes in page.tags:
        assert not {"src", "href", "xlink:href", "srcset", "action"} & attributes.keys()
        assert not any(name.startswith("on") for name in attributes)
    assert not re.search(r"https?:|@import|url\(|//\w", source)
    headings = {"orders", "old", "future"}
    assert headings <= set(page.texts)
    assert "<b>key</b>" in page.texts or read == "headers"


def with_hostile_texts(document: Any) -> Any:  # noqa: ANN401 - any value of a document
    """Return the document with every text of a foreign origin replaced."""
    if isinstance(document, dict):
        return {
            name: HOSTILE
            if name in {"topic", "key", "codec"} and value
            else with_hostile_texts(value)
            for name, value in document.items()
        } | ({"paths": [HOSTILE], "problems": [HOSTILE]} if "paths" in document else {})
    if isinstance(document, list):
        return [with_hostile_texts(each) for each in document]
    return document


def test_whatever_comes_from_disk_is_escaped(log_directory: Path) -> None:
    document = with_hostile_texts(pylog.stats(log_directory, read="all").document())
    source = statistics_page(document)
    page = Page(source)
    assert "script" not in {tag for tag, _ in page.tags}
    shown = "".join(page.texts)
    assert "<script>alert(1)</script>\"'&\\u202eevil\\u001b[31m\\ud800" in shown
    assert not re.search(
        "[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]", source
    )
    source.encode("utf-8")


def test_a_page_of_headers_says_how_it_was_made(tmp_path: Path) -> None:
    write_partition(tmp_path, {0: [batch_v2(plain_records(0, 3))]})
    shown = "".join(Page(pylog.stats(tmp_path, now_ms=0).html()).texts)
    assert "1970-01-01 00:00 UTC; every batch header was read, and no record" in shown


def test_the_cause_of_a_problem_is_not_cut_off(tmp_path: Path) -> None:
    name = "a-long-name." * 16
    log = write_partition(tmp_path, {0: [batch_v2(plain_records(0, 5))]}, name=f"{name}-0")
    with segment_path(log, 0).open("r+b") as file:
        file.seek(30)
        file.write(b"\xff")
    found = pylog.stats(tmp_path, read="all")
    [problem] = found.problems
    assert len(problem) > 200
    assert problem[-40:] in found.html()
