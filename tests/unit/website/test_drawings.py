from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.website.batch_drawing import header_fields, record_fields
from tests.website.drawings import drawings
from tests.website.terminal_drawing import THEMES, terminal_drawing

if TYPE_CHECKING:
    from tests.support.golden import GoldenRoot

ROOT = Path(__file__).parents[3]


@pytest.fixture
def segment(golden_root: GoldenRoot) -> bytes:
    directory = golden_root.case("4.3.0/internal-logdir")
    return (directory / "orders-0" / "00000000000000000000.log").read_bytes()


def test_the_fields_of_a_header_are_those_that_kafkas_tool_prints(segment: bytes) -> None:
    values = {field.name: field.value for field in header_fields(segment)}
    # dump.orders-0.txt.gz beside the segment: baseOffset 0, count 9, size 825, crc 2517974255.
    assert values["base offset"] == "0"
    assert values["records"] == "9"
    assert int(values["length"]) + 12 == 825
    assert int(values["CRC-32C"], 16) == 2517974255


def test_fields_follow_each_other_and_a_record_ends_where_its_length_says(segment: bytes) -> None:
    header = header_fields(segment)
    record = record_fields(segment, 61)
    for fields in (header, record):
        ends = [field.position + field.size for field in fields]
        assert [field.position for field in fields[1:]] == ends[:-1]
    assert header[-1].position + header[-1].size == 61
    length, *rest = record
    assert sum(field.size for field in rest) == int(length.value)


def test_the_readme_shows_the_terminal_for_a_light_and_for_a_dark_page() -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    shown = re.findall(r'src(?:set)?="([^"]+)"', text)
    assert sorted(shown) == ["docs/doctor-dark.svg", "docs/doctor-light.svg"]
    assert shown == [path for path in drawings(ROOT) if path in shown][::-1]


def test_text_and_colours_of_a_session_are_in_its_drawing() -> None:
    session = "$ pylog x\n\x1b[1;31m  error  \x1b[0ma < b   c\n"
    for theme in THEMES.values():
        lines = terminal_drawing(session, theme).splitlines()
        assert f'fill="{theme.ground}"' in "".join(lines)
        assert [re.sub("<.*?>", "", line) for line in lines if line.startswith("<text")] == [
            "$ pylog x",
            "error",
            "a &lt; b",
            "c",
        ]
        assert [line for line in lines if f'fill="{theme.by_code["31"]}"' in line] == [
            line for line in lines if 'font-weight="bold"' in line and ">error<" in line
        ]


def test_the_drawings_in_docs_are_up_to_date() -> None:
    for path, text in drawings(ROOT).items():
        assert (ROOT / path).read_text("utf-8") == text, "run: python -m tests.website --draw"
