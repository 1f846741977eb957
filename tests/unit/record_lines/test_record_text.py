from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pylog.record_lines.record_text import text_lines

if TYPE_CHECKING:
    from collections.abc import Sequence


def lines(*records: tuple[bytes | None, bytes | None]) -> Sequence[str]:
    keys, values = zip(*records, strict=True)
    batch = pa.RecordBatch.from_arrays(
        [pa.array(keys, pa.binary()), pa.array(values, pa.binary())], names=["key", "value"]
    )
    text = b"".join(text_lines(batch)).decode()
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


NAMED = {"\t": r"\t", "\n": r"\n", "\r": r"\r", "\\": r"\\"}
MARKS = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"


def escaped(value: bytes | None) -> str:
    """Return what stands for a value, character by character."""
    if value is None:
        return r"\N"
    text = ""
    # A byte that belongs to no character comes back as a surrogate.
    for character in value.decode("utf-8", "surrogateescape"):
        code = ord(character)
        if character in NAMED:
            text += NAMED[character]
        elif 0xDC80 <= code <= 0xDCFF:
            text += f"\\x{code - 0xDC00:02x}"
        elif character in MARKS or unicodedata.category(character) in {"Cc", "Zl", "Zp"}:
            text += f"\\x{code:02x}" if code < 0x80 else f"\\u{code:04x}"
        else:
            text += character
    return text


characters = st.text("a\\\\ ~é🎈\t\n\x1b\x7f\x85\u2028\u202e", max_size=8).map(str.encode)
values = st.none() | st.binary(max_size=9) | st.text(max_size=9).map(str.encode) | characters


@given(st.lists(st.tuples(values, values), min_size=1, max_size=12))
def test_any_bytes_are_shown_character_by_character(
    records: list[tuple[bytes | None, bytes | None]],
) -> None:
    assert list(lines(*records)) == [f"{escaped(key)}\t{escaped(value)}" for key, value in records]


@pytest.mark.parametrize("code", range(0x81))
def test_a_column_of_one_character_is_escaped_where_it_must_be(code: int) -> None:
    value = chr(code).encode()
    assert lines((None, value)) == [f"\\N\t{escaped(value)}"]
