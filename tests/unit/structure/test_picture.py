from __future__ import annotations

import re
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree

import pytest

from tests.structure.layers import ImportGraph, import_graph, read_layers
from tests.structure.page import PAGE, PICTURE, generated_files, stale_files
from tests.structure.picture import draw
from tests.structure.source_tree import SourceTree
from tests.unit.structure.made_up import tree_of

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[3]
SVG = "{http://www.w3.org/2000/svg}"
LAYERS = [("pylog.cli",), ("pylog.reading", "pylog.log"), ("pylog.record",), ("pylog.files",)]


def graph() -> ImportGraph:
    sources = {
        "pylog.cli.a": "import pylog.log.a\nimport pylog.files.a",
        "pylog.reading.a": "import pylog.record\nimport pylog.files.a",
        "pylog.log.a": "import pylog.files.a",
        "pylog.record": '"""Bytes & records: both ways."""',
        "pylog.files.a": "",
    }
    return import_graph(tree_of(sources), LAYERS)


@pytest.fixture(scope="module")
def whole() -> ImportGraph:
    return import_graph(SourceTree.read(ROOT), read_layers(ROOT / "pyproject.toml"))


class Box:
    def __init__(self, element: ElementTree.Element) -> None:
        self.left, self.top = float(element.attrib["x"]), float(element.attrib["y"])
        self.right = self.left + float(element.attrib["width"])
        self.bottom = self.top + float(element.attrib["height"])

    def overlaps(self, other: Box) -> bool:
        is_beside = self.right < other.left or other.right < self.left
        return not (is_beside or self.bottom < other.top or other.bottom < self.top)

    def holds(self, x: float, y: float) -> bool:
        return self.left < x < self.right and self.top < y < self.bottom


def elements(picture: str, tag: str, *kinds: str) -> list[ElementTree.Element]:
    found = ElementTree.fromstring(picture).iter(f"{SVG}{tag}")  # noqa: S314 - our own
    return [each for each in found if each.get("class") in kinds]


def boxes(picture: str) -> list[Box]:
    return [Box(each) for each in elements(picture, "rect", "package", "module")]


def points(arrow: ElementTree.Element) -> Iterator[tuple[float, float]]:
    """Yield points along an arrow: its ends, lanes and the middles of its curves."""
    numbers = [
        [float(each) for each in re.findall(r"[-\d.]+", command)]
        for command in re.findall(r"[MLC][^MLC]*", arrow.attrib["d"])
    ]
    x, y = 0.0, 0.0
    for command in numbers:
        ends = [(x, y), *zip(command[::2], command[1::2], strict=True)]
        if len(ends) == 4:
            for share in (0.25, 0.5, 0.75):
                rest = 1 - share
                weights = (rest**3, 3 * rest**2 * share, 3 * rest * share**2, share**3)
                yield (
                    sum(w * at[0] for w, at in zip(weights, ends, strict=True)),
                    sum(w * at[1] for w, at in zip(weights, ends, strict=True)),
                )
        x, y = ends[-1]
        yield x, y


def test_every_room_is_a_box_with_its_name_and_its_summary() -> None:
    picture = draw(graph())
    titles = [each.text for each in elements(picture, "text", "title")]
    assert sorted(map(str, titles)) == ["cli", "files", "log", "reading", "record.py"]
    assert [each.text for each in elements(picture, "text", "summary")] == ["Bytes & records"]


def test_every_import_but_the_shortcuts_is_an_arrow() -> None:
    arrows = elements(draw(graph()), "path", "arrow")
    assert len(arrows) == len([("cli", "log"), ("reading", "record"), ("reading", "files"),
                               ("log", "files")])  # fmt: skip


def test_arrows_point_down(whole: ImportGraph) -> None:
    for arrow in elements(draw(whole), "path", "arrow"):
        heights = [y for _, y in points(arrow)]
        assert heights == sorted(heights)


def test_no_box_overlaps_another_one(whole: ImportGraph) -> None:
    found = boxes(draw(whole))
    assert len(found) == len(whole.rooms)
    assert not [pair for pair in combinations(found, 2) if pair[0].overlaps(pair[1])]


def test_no_arrow_crosses_a_box(whole: ImportGraph) -> None:
    picture = draw(whole)
    for arrow in elements(picture, "path", "arrow"):
        for x, y in points(arrow):
            assert not [box for box in boxes(picture) if box.holds(x, y)]


def test_the_same_imports_give_the_same_bytes(whole: ImportGraph) -> None:
    assert generated_files(whole) == generated_files(whole)


def test_the_page_names_every_import() -> None:
    page = generated_files(graph())[PAGE]
    assert "| `pylog.cli` |  | `log`, `files` |\n" in page
    assert "| `pylog.record` | Bytes & records: both ways | nothing of ours |\n" in page


def test_files_that_differ_or_are_missing_are_out_of_date(tmp_path: Path) -> None:
    generated = generated_files(graph())
    (tmp_path / "docs").mkdir()
    for path, text in generated.items():
        (tmp_path / path).write_text(text, encoding="utf-8")
    assert not list(stale_files(tmp_path, generated))
    (tmp_path / PICTURE).write_text(generated[PICTURE] + " ", encoding="utf-8")
    (tmp_path / PAGE).unlink()
    assert [problem.path for problem in stale_files(tmp_path, generated)] == [PICTURE, PAGE]
