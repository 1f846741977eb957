"""The links of a built site: each leads to a file and a place in it, and nothing is loaded."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_LOADED = {"script": "src", "img": "src", "link": "href", "source": "src", "iframe": "src"}
_NOT_FOUND_PAGE = "404.html"  # its links are from the top of a host


class _Page(HTMLParser):
    """What a page links to, what it loads, and the places in it that a link can name."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.places: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what the beginning of an element says."""
        values = dict(attrs)
        self.places.update(value for name in ("id", "name") if (value := values.get(name)))
        loaded = values.get(_LOADED.get(tag, ""))
        if loaded and values.get("rel") not in ("prev", "next", "canonical"):
            self.loaded.append(loaded)
        if tag == "a" and (link := values.get("href")):
            self.links.append(link)


def broken_links(site: Path) -> Iterator[str]:
    """Yield what is wrong with the links of the pages of a site, each with its page.

    A link to another host is not followed; something that a page would load from one is wrong.
    """
    texts = {file: file.read_text(encoding="utf-8") for file in sorted(site.rglob("*.html"))}
    pages = {file: _Page(text) for file, text in texts.items() if file.name != _NOT_FOUND_PAGE}
    for file, page in pages.items():
        name = file.relative_to(site)
        for link in page.loaded:
            if urlsplit(link).netloc:
                yield f"{name}: {link} is loaded from another host"
        for link in [*page.links, *page.loaded]:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (file.parent / unquote(parts.path)).resolve() if parts.path else file
            if not target.is_file():
                yield f"{name}: {link} leads nowhere"
            elif parts.fragment and target in pages and parts.fragment not in pages[target].places:
                yield f"{name}: {link} names no place on that page"
