from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from pylog.cli.rendering.record_text import text_lines

if TYPE_CHECKING:
    from collections.abc import Sequence


def lines(*records: tuple[bytes | None, bytes | None]) -> Sequence[str]:
    keys, values = zip(*records, strict=True)
    batch = pa.RecordBatch.from_arrays(
        [pa.array(keys, pa.binary()), pa.array(values, pa.binary())], names=["key", "value"]
    )
    text = text_lines(batch).decode()
    assert text.endswith("\n")
    return text[:-1].split("\n")


def test_a_tab_stands_between_key_and_value() -> None:
    assert lines((b"user-1", b"bought")) == ["user-1\tbought"]


def test_null_and_empty_differ() -> None:
    assert lines((None, b""), (b"", None)) == ["\\N\t", "\t\\N"]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("grün 注文 🎈".encode(), "grün 注文 🎈"),
        (b"a\tb\nc\rd", r"a\tb\nc\rd"),
        (b"\x1b[2J", r"\x1b[2J"),
        (b"\xff\xfe", r"\xff\xfe"),
        (b"\\N", r"\\N"),
        (b"\\xff", r"\\xff"),
        ("\x85".encode(), r"\u0085"),
        ("\u2028".encode(), r"\u2028"),
        ("pay\u202e001".encode(), r"pay\u202e001"),
    ],
)
def test_a_record_is_one_line_whatever_it_holds(value: bytes, text: str) -> None:
    assert lines((b"k", value)) == [f"k\t{text}"]
