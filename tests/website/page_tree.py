"""What the site is made of: the pages of ``docs/`` and a few others, laid out in one folder.

On the site as in the repository a page links to what lies beside it. What lies outside of ``docs/``
comes along: some pages of the project's root under a name of their own, a file that a page links
to as it is, and a folder as a page that shows its files.
"""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path, PurePosixPath

from tests.website.counted_tests import count_table
from tests.website.notebook_page import notebook_page

ROOT_PAGES = {
    "README.md": "index.md",
    "docs/index.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
}
"""Pages whose place on the site is not that below ``docs/``; the README's is the start page."""

COUNTS = "<!-- the number of tests: on the site, from the sources that it was built from -->"
"""Where the page about the tests has its table of counts on the site."""

TABS, END_OF_TABS = "<!-- tabs -->", "<!-- end of tabs -->"
"""What sections stand between that are tabs on the site; elsewhere they are read one by one."""

_PICTURE = re.compile(
    r"<picture>\s*<source [^>]*srcset=\"(?P<dark>[^\"]+)\">\s*"
    r"<img alt=\"(?P<alt>[^\"]*)\" src=\"(?P<light>[^\"]+)\">\s*</picture>"
)
_FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(?<=\]\()(?P<path>[^)\s#:]+)(?P<anchor>#[^)\s]*)?(?=\))")


class PageTree:
    """The folder that the generator reads.

    Parameters
    ----------
    root
        The project's root.
    folder
        Where the pages go. Made anew.
    """

    def __init__(self, root: Path, folder: Path) -> None:
        self._root = root
        self._folder = folder

    def write(self) -> None:
        """Lay out all pages, and whatever they link to or show.

        Raises
        ------
        FileNotFoundError
            A page links to a file of the project that does not exist.
        """
        shutil.rmtree(self._folder, ignore_errors=True)
        docs = self._root / "docs"
        sources = {file.relative_to(self._root).as_posix() for file in docs.rglob("*.*")}
        for source in sorted(sources | (ROOT_PAGES.keys() - {"README.md"})):
            self._add(source)

    def _add(self, source: str) -> None:
        target = self._folder / _place_of(source)
        target.parent.mkdir(parents=True, exist_ok=True)
        if not source.endswith(".md"):
            shutil.copyfile(self._root / source, target)
            return
        text = (self._root / source).read_text(encoding="utf-8")
        text = text.replace(COUNTS, count_table(self._root / "tests"))
        text = _PICTURE.sub(
            r"![\g<alt>](\g<light>#only-light) ![\g<alt>](\g<dark>#only-dark)", text
        )
        target.write_text(_with_tabs(self._with_links(text, source)), encoding="utf-8")

    def _with_links(self, text: str, source: str) -> str:
        """Return a page whose links lead to where things are on the site; code stays as it is."""
        pieces = []
        done = 0
        for fenced in _FENCED.finditer(text):
            pieces.append(self._linked(text[done : fenced.start()], source))
            pieces.append(fenced.group())
            done = fenced.end()
        return "".join([*pieces, self._linked(text[done:], source)])

    def _linked(self, text: str, source: str) -> str:
        def new_link(match: re.Match[str]) -> str:
            path = os.path.normpath(PurePosixPath(source).parent / match["path"])
            place = self._bring(path)
            here = PurePosixPath(_place_of(source)).parent
            return os.path.relpath(place, here) + (match["anchor"] or "")

        return _LINK.sub(new_link, text)

    def _bring(self, path: str) -> str:
        """Return where a file or folder of the project is on the site, after bringing it there."""
        place, origin = _place_of(path), self._root / path
        if path in ROOT_PAGES or path.startswith("docs/"):
            return place
        target = self._folder / place
        target.parent.mkdir(parents=True, exist_ok=True)
        if origin.is_dir():
            target.with_suffix(".md").write_text(_folder_page(origin, path), encoding="utf-8")
            return f"{place}.md"
        if origin.suffix == ".ipynb":
            page = self._with_links(notebook_page(origin), path)
            target.with_name(f"{target.name}.md").write_text(page, encoding="utf-8")
            return f"{place}.md"
        if not target.exists():
            self._add(path)
        return place


def _with_tabs(text: str) -> str:
    """Make tabs of the sections of the third level between the marks."""
    before, mark, rest = text.partition(TABS)
    if not mark:
        return text
    sections, _, after = rest.partition(END_OF_TABS)
    lines = []
    is_code = False
    for line in sections.splitlines():
        is_code ^= line.startswith("```")
        if line.startswith("### ") and not is_code:
            title = line.removeprefix("### ")
            lines += [f'=== "{title}"', "", f'    <a id="{title.lower().replace(" ", "-")}"></a>']
        else:
            lines.append(f"    {line}" if line else "")
    return before + "\n".join(lines) + after


def _place_of(path: str) -> str:
    """Return where a file of the project is on the site, relative to its top."""
    if path in ROOT_PAGES:
        return ROOT_PAGES[path]
    return path.removeprefix("docs/") if path.startswith("docs/") else f"project/{path}"


def _folder_page(folder: Path, name: str) -> str:
    files = sorted(file for file in folder.iterdir() if file.is_file())
    shown = [
        f"## {file.name}\n\n```text\n{file.read_text(encoding='utf-8')}```\n" for file in files
    ]
    return "\n".join([f"# {name}/\n", *shown])
