from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.website.batch_drawing import header_fields, record_fields
from tests.website.drawings import drawings

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


def test_the_drawings_in_docs_are_up_to_date() -> None:
    for path, text in drawings(ROOT).items():
        assert (ROOT / path).read_text("utf-8") == text, "run: python -m tests.website --draw"
