r"""Records as JSON lines: Arrow columns in, bytes out, column by column.

A line has these keys, in this order, and no blanks::

    {"topic":…,"partition":…,"offset":…,"timestamp":ms,"timestampType":-1|0|1,"leaderEpoch":…|null,
     "values":"text"|"base64","key":…|null,"value":…|null,"headers":[[name,…|null],…]}

With ``"values":"text"``, a key, a value or a header's value is the text that its bytes are in
UTF-8, or ``{"base64":…}`` if they are not UTF-8. The line is UTF-8, too; only characters that a
terminal would act upon are escapes.

With ``"values":"base64"``, each is base64: the standard alphabet, padded, unbroken. The line is
ASCII; other characters of topics and header names are ``\u…`` escapes.

The key ``values`` comes first, so that nobody takes one for the other: ``test`` is valid base64.
"""

from __future__ import annotations

from binascii import b2a_base64
from json.encoder import encode_basestring, encode_basestring_ascii
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from pylog.record_lines.arrow_functions import cast, replace_substring, take
from pylog.record_lines.base64_column import base64_column
from pylog.record_lines.text_column import (
    ends_of,
    escaped_column,
    joined,
    joined_lists,
    text_column,
    whole_text,
)
from pylog.text.words import printable_in_json

if TYPE_CHECKING:
    from collections.abc import Callable


JSON_COLUMNS = (
    "topic",
    "partition",
    "offset",
    "timestamp",
    "timestampType",
    "headers",
    "key",
    "value",
    "batch",
)
"""The columns that a batch must have, the timestamp in ms, to be formatted here."""

_TEXT_MARK = '"values":"text",'
_BASE64_MARK = '"values":"base64",'


def json_lines(batch: pa.RecordBatch) -> memoryview:
    """Return a line for each record of ``batch``, all of one partition, with values in base64."""
    return _lines(batch, _one_place, _BASE64_MARK, _base64, _ascii)


def json_lines_of_text(batch: pa.RecordBatch) -> memoryview:
    """Return a line for each record of ``batch``, all of one partition, with values as text."""
    return _lines(batch, _one_place, _TEXT_MARK, _text, _text)


def mixed_json_lines(batch: pa.RecordBatch) -> memoryview:
    """Return a line for each record of ``batch``, of any partitions, with values in base64."""
    return _lines(batch, _many_places, _BASE64_MARK, _base64, _ascii)


def mixed_json_lines_of_text(batch: pa.RecordBatch) -> memoryview:
    """Return a line for each record of ``batch``, of any partitions, with values as text."""
    return _lines(batch, _many_places, _TEXT_MARK, _text, _text)


def _one_place(batch: pa.RecordBatch) -> tuple[pa.Array | str, ...]:
    """Return the beginning of the lines of records that are all of one partition."""
    topic = encode_basestring_ascii(batch.column("topic")[0].as_py())
    partition = batch.column("partition")[0].as_py()
    return (f'{{"topic":{topic},"partition":{partition},"offset":',)


def _many_places(batch: pa.RecordBatch) -> tuple[pa.Array | str, ...]:
    """Return the beginning of the lines of any records."""
    topics = _ascii(batch.column("topic"))
    return '{"topic":', topics, ',"partition":', batch.column("partition"), ',"offset":'


def _lines(
    batch: pa.RecordBatch,
    places_of: Callable[[pa.RecordBatch], tuple[pa.Array | str, ...]],
    mark: str,
    values_of: Callable[[pa.Array], pa.Array],
    names_of: Callable[[pa.Array], pa.Array],
) -> memoryview:
    if not batch.num_rows:
        return memoryview(b"")
    lines = joined(
        *places_of(batch),
        batch.column("offset"),
        ',"timestamp":',
        cast(batch.column("timestamp"), pa.int64()),
        ',"timestampType":',
        batch.column("timestampType"),
        ',"leaderEpoch":',
        batch.column("batch").field("leaderEpoch"),
        f',{mark}"key":',
        values_of(batch.column("key")),
        ',"value":',
        values_of(batch.column("value")),
        ',"headers":[',
        _headers(batch.column("headers"), values_of, names_of),
        "]}\n",
        null="null",
    )
    return whole_text(lines)


def headers_as_json(column: pa.Array, values: str) -> pa.Array:
    """Return each record's headers as one JSON array, ``[]`` for none."""
    lists = _headers(column, *((_text, _text) if values == "text" else (_base64, _ascii)))
    if isinstance(lists, str):
        ends = np.arange(len(column) + 1, dtype=np.int64) * 2
        buffers = [None, pa.py_buffer(ends), pa.py_buffer(b"[]" * len(column))]
        return pa.Array.from_buffers(pa.large_string(), len(column), buffers, null_count=0)
    return joined("[", lists, "]")


def _base64(column: pa.Array) -> pa.Array:
    """Return the values of a binary column as JSON strings."""
    return joined('"', base64_column(column), '"')


def _text(column: pa.Array) -> pa.Array:
    """Return the values of a binary or string column as JSON strings of their text."""
    return escaped_column(cast(column, pa.binary()), _text_of_printable, _text_of_value)


def _text_of_printable(column: pa.Array) -> pa.Array:
    for character in ("\\", '"'):
        column = replace_substring(column, character, f"\\{character}")
    return joined('"', column, '"')


def _text_of_value(value: bytes) -> bytes:
    try:
        text = value.decode()
    except UnicodeDecodeError:
        return b'{"base64":"%b"}' % b2a_base64(value, newline=False)
    string = encode_basestring(text)
    return (string if string.isprintable() else printable_in_json(string)).encode()


def _headers(
    column: pa.Array,
    values_of: Callable[[pa.Array], pa.Array],
    names_of: Callable[[pa.Array], pa.Array],
) -> pa.Array | str:
    """Return the headers of each record as JSON pairs with commas between them."""
    if column.null_count == len(column):
        return ""
    ends = ends_of(column)
    entries = column.values.slice(ends[0], ends[-1] - ends[0])
    names, values = entries.field(0), entries.field(1)
    pairs = joined("[", names_of(names), ",", values_of(values), "]", null="null")
    return joined_lists(ends - ends[0], pairs)


def _ascii(names: pa.Array) -> pa.Array:
    """Return the names as JSON strings in ASCII; most are the same in many records."""
    names = names.dictionary_encode()
    strings = map(encode_basestring_ascii, names.dictionary.to_pylist())
    return take(text_column([string.encode() for string in strings]), names.indices)
