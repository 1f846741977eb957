"""Text in columns: every character is itself or escaped."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.batches import Stored
from tests.unit.record_lines.text_lines import Row, arrow_batch, line, text_line, text_lines

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("value", "printed"),
    [
        (None, b"null"),
        (b"", b'""'),
        (b"\xff\x00", b'{"base64":"/wA="}'),
        (b"\x1b[2J\n", b'"\\u001b[2J\\n"'),
        ("\x7f\x9b\u202e\u2028".encode(), b'"\\u007f\\u009b\\u202e\\u2028"'),
    ],
)
def test_text_that_a_terminal_would_act_upon_is_escaped(
    value: bytes | None, printed: bytes, tmp_path: Path
) -> None:
    line = text_line(tmp_path, Stored(0, 1, value, value))
    assert b'"key":%b,"value":%b,"headers":[]}' % (printed, printed) in line


def with_values(texts: list[str]) -> list[Row]:
    return [Row(0, 0, 0, 0, None, text.encode(), None) for text in texts]


def test_every_character_is_itself_or_escaped() -> None:
    # Beyond these, up to the surrogates and after them, nothing is escaped.
    records = with_values([chr(code) for code in range(0x2100)])
    lines = text_lines(arrow_batch(records, "t"))
    assert lines == b"".join(line(row, "t", is_text=True) for row in records)


@pytest.mark.parametrize("code", range(0x81))
def test_a_column_of_one_character_is_escaped_where_it_must_be(code: int) -> None:
    (row,) = with_values([chr(code)])
    assert text_lines(arrow_batch([row], "t")) == line(row, "t", is_text=True)
