r"""Records as text: key, tab, value, one record a line.

Keys and values are read as UTF-8. A missing (null) key or value is ``\N``, as in the text
files of databases, an empty one is empty. Bytes that are not UTF-8 are ``\x..``; control
characters, and those that change the direction of text, are ``\t``, ``\n``, ``\r``, ``\x..``
or ``\u....``; a backslash is doubled. So a line is always one record, a tab always stands
between key and value, and nothing is lost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from pylog.record_lines.arrow_functions import cast, equal, if_else, replace_substring
from pylog.record_lines.text_column import (
    escaped_column,
    joined,
    printable_column,
    text_column,
    whole_text,
)
from pylog.text.words import printable

if TYPE_CHECKING:
    from collections.abc import Iterator


TEXT_COLUMNS = ("key", "value")
"""The columns that `text_lines` needs."""

LOCATED_COLUMNS = ("topic", "partition", "offset", "timestamp", *TEXT_COLUMNS)
"""The columns that `located_lines` needs, the timestamp in ms."""

_NULL = r"\N"


def text_lines(batch: pa.RecordBatch) -> Iterator[memoryview]:
    """Yield a line for each record of ``batch``."""
    keys, values = _tab_text(batch.column("key")), _tab_text(batch.column("value"))
    yield whole_text(joined(keys, "\t", values, "\n", null=_NULL))


def located_lines(batch: pa.RecordBatch) -> Iterator[memoryview]:
    """Yield a line for each record: partition, offset, time in UTC or ``-``, key, value."""
    stamps = batch.column("timestamp")
    text = cast(stamps, pa.large_string())
    is_missing = equal(
        cast(cast(stamps, pa.int64()), pa.large_string()),
        text_column([b"-1"])[0],
    )
    topics = printable_column(batch.column("topic"))
    place = joined(topics, "-", batch.column("partition"), "\t", batch.column("offset"))
    keys, values = _tab_text(batch.column("key")), _tab_text(batch.column("value"))
    times = if_else(is_missing, text_column([b"-"])[0], text)
    yield whole_text(joined(place, "\t", times, "\t", keys, "\t", values, "\n", null=_NULL))


def _tab_text(column: pa.Array) -> pa.Array:
    return escaped_column(column, _tab_text_of_printable, _tab_text_of_value)


def _tab_text_of_printable(column: pa.Array) -> pa.Array:
    return replace_substring(column, "\\", r"\\")


def _tab_text_of_value(value: bytes) -> bytes:
    text = value.replace(b"\\", b"\\\\").decode("utf-8", "backslashreplace")
    return (text if text.isprintable() else printable(text)).encode()
