"""The page about the imports: the picture, and the same as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.structure.picture import draw
from tests.structure.source_tree import Module, Problem

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from tests.structure.layers import ImportGraph

PICTURE = "docs/import-graph.svg"
PAGE = "docs/import-graph.md"

_HEAD = """\
# Who imports whom

`make import-graph` makes this page from the import statements and from the layers contract in
`pyproject.toml`; `make lint` fails when the page is out of date.

Every row of the picture is a layer of the contract. A box is a package (blue) or a single module
(grey), with the first words of its docstring, and an arrow means "imports". Imports point down
only: never up, and never to a box in the same row. An arrow is left out where a chain of other
arrows leads to the same box; the table below names every import. The box `pylog` is the package's
own `__init__.py`: the public names, each of which is imported when it is first used.

![The packages in their layers, with arrows from each to what it imports](import-graph.svg)

| package | what it is | imports |
|---|---|---|
"""


def generated_files(graph: ImportGraph) -> dict[str, str]:
    """Return the files that ``make import-graph`` makes: their text by their path."""
    return {PICTURE: draw(graph), PAGE: _page(graph)}


def _page(graph: ImportGraph) -> str:
    order = sorted(graph.rooms, key=lambda name: (graph.depths[name], name))
    rows = []
    for name in order:
        imported = [other for other in order if (name, other) in graph.edges]
        summary = graph.rooms[name].summary.replace("|", "\\|")
        rows.append(
            f"| `{name}` | {summary} | {', '.join(map(_short, imported)) or 'nothing of ours'} |\n"
        )
    return _HEAD + "".join(rows)


def _short(name: str) -> str:
    return f"`{name.removeprefix('pylog.')}`"


def stale_files(root: Path, generated: Mapping[str, str]) -> Iterator[Problem]:
    """Find generated files that are missing, or differ from what would be written now."""
    for path, text in generated.items():
        file = root / path
        if not file.exists() or file.read_text(encoding="utf-8") != text:
            module = Module(path, path, "")
            yield module.problem(1, "the file is out of date", "Run: make import-graph")
