"""Headings in the middle of a file: below one stands a second subject, which has its own file.

A heading is a comment at the left margin with a blank line before and after it, below the first
definition or import. What is right where it is, or still to be moved, is listed with its reason.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from tests.structure.source_tree import Problem

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.structure.source_tree import Module, SourceTree

LIST = "tests/structure/headings.txt"


def headings(root: Path, tree: SourceTree) -> Iterator[Problem]:
    """Find headings in the middle of files that the list does not have, and stale lines of it."""
    listed = {
        tuple(part.strip() for part in text.split(" | ")[:2]): line
        for line, text in enumerate((root / LIST).read_text("utf-8").splitlines(), start=1)
        if text and not text.startswith("#")
    }
    found = set()
    for module in tree:
        for line, text in _headings(module):
            known = next((each for each in listed if _is_of(each, module.path, text)), None)
            if known is None:
                yield module.problem(
                    line,
                    f"a second subject below a heading: {text}",
                    f"Give it a file of its own, or a line with the reason in {LIST}.",
                )
            else:
                found.add(known)
    for each, line in listed.items():
        if each not in found:
            yield Problem(LIST, line, f"{each[0]} has no such heading", "Remove the line.")


def _is_of(listed: tuple[str, ...], path: str, text: str) -> bool:
    return path == listed[0] and text.startswith(listed[1])


def _headings(module: Module) -> Iterator[tuple[int, str]]:
    """Yield the line and the first line of text of each."""
    lines = module.source.splitlines()
    starts = [each.lineno for each in module.syntax.body[1:]]
    numbered = groupby(enumerate(lines, start=1), key=lambda each: each[1].startswith("#"))
    for is_comment, group in numbered:
        block = list(group)
        first, last = block[0][0], block[-1][0]
        if is_comment and starts and first > starts[0]:
            is_apart = not lines[first - 2] and last < len(lines) and not lines[last]
            if is_apart:
                yield first, block[0][1].lstrip("# -").strip()
