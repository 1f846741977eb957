r"""Records as JSON lines: Arrow columns in, bytes out, column by column.

A line has these keys, in this order, and no blanks::

    {"topic":…,"partition":…,"offset":…,"timestamp":ms,"timestampType":-1|0|1,"leaderEpoch":…|null,
     "key":base64|null,"value":base64|null,"headers":[[name,base64|null],…]}

The output is ASCII (other characters of topics and header names are ``\u…`` escapes), so that a
line is a line to every tool. Base64 is the standard alphabet, padded, unbroken.

With values as text, the key ``"values":"text"`` stands before ``"key"``, so that nobody takes the
text for base64. A key, a value or a header's value is the text that its bytes are in UTF-8, or
``{"base64":…}`` if they are not UTF-8. The text is UTF-8, too; only characters that a terminal
would act upon are escapes.
"""

from __future__ import annotations

from binascii import b2a_base64
from functools import lru_cache
from itertools import pairwise
from json.encoder import encode_basestring, encode_basestring_ascii
from typing import TYPE_CHECKING, Literal

from pylog.cli.rendering.printable import printable_in_json

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

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


def json_lines(batch: pa.RecordBatch) -> bytes:
    """Return a line for each record of ``batch``, all of one partition, with values in base64."""
    return _lines(batch, b"", _base64, _ascii_string)


def json_lines_of_text(batch: pa.RecordBatch) -> bytes:
    """Return a line for each record of ``batch``, all of one partition, with values as text."""
    return _lines(batch, b'"values":"text",', _text, _text_value)


def _lines(
    batch: pa.RecordBatch,
    mark: bytes,
    values_of: Callable[[pa.Array], list[bytes]],
    name_of: Callable[[bytes], bytes],
) -> bytes:
    if not batch.num_rows:
        return b""
    topic = encode_basestring_ascii(batch.column("topic")[0].as_py())
    partition = batch.column("partition")[0].as_py()
    # The constant part of all lines may hold a percent sign.
    prefix = f'{{"topic":{topic},"partition":{partition},"offset":'.replace("%", "%%")
    line = prefix.encode() + (
        b'%d,"timestamp":%d,"timestampType":%d,"leaderEpoch":%b,'
        + mark
        + b'"key":%b,"value":%b,"headers":%b}\n'
    )
    rows = zip(
        _integers(batch.column("offset"), "q"),
        _integers(batch.column("timestamp"), "q"),
        _integers(batch.column("timestampType"), "i"),
        _nullable_integers(batch.column("batch").field("leaderEpoch")),
        values_of(batch.column("key")),
        values_of(batch.column("value")),
        _headers(batch.column("headers"), values_of, name_of),
        strict=True,
    )
    return b"".join([line % row for row in rows])


def _integers(array: pa.Array, code: Literal["i", "q"]) -> list[int]:
    """Return the values of a column without nulls: int32 (i), int64 or timestamps (q)."""
    values = memoryview(array.buffers()[1]).cast(code)
    return list(values[array.offset : array.offset + len(array)])


def _nullable_integers(array: pa.Array) -> list[bytes]:
    if array.null_count == len(array):
        return [b"null"] * len(array)
    if array.null_count == 0:
        return [b"%d" % value for value in _integers(array, "i")]
    return [b"null" if value is None else b"%d" % value for value in array.to_pylist()]


def _ends(array: pa.Array) -> list[int]:
    """Return where the entries of a binary or list column begin, and where the last one ends."""
    ends = memoryview(array.buffers()[1]).cast("i")
    return list(ends[array.offset : array.offset + len(array) + 1])


def _base64(array: pa.Array) -> list[bytes]:
    """Return the entries of a binary column as JSON strings or ``null``."""
    if array.null_count == len(array):
        return [b"null"] * len(array)
    data = memoryview(array.buffers()[2] or b"")
    encoded = [
        b'"%b"' % b2a_base64(data[start:end], newline=False)
        for start, end in pairwise(_ends(array))
    ]
    for row in _null_rows(array):
        encoded[row] = b"null"
    return encoded


def _text(array: pa.Array) -> list[bytes]:
    """Return the entries of a binary column as JSON strings of their text or ``null``."""
    return [b"null" if value is None else _text_value(value) for value in array.to_pylist()]


def _text_value(value: bytes) -> bytes:
    try:
        text = value.decode()
    except UnicodeDecodeError:
        return b'{"base64":"%b"}' % b2a_base64(value, newline=False)
    string = encode_basestring(text)
    return (string if text.isprintable() else printable_in_json(string)).encode()


def _null_rows(array: pa.Array) -> list[int]:
    if array.null_count == 0:
        return []
    bitmap = bytes(array.buffers()[0])
    places = range(array.offset, array.offset + len(array))
    return [row for row, at in enumerate(places) if not bitmap[at >> 3] >> (at & 7) & 1]


def _headers(
    array: pa.Array,
    values_of: Callable[[pa.Array], list[bytes]],
    name_of: Callable[[bytes], bytes],
) -> list[bytes]:
    """Return the headers of each record as a JSON list of pairs."""
    if array.null_count == len(array):
        return [b"[]"] * len(array)
    ends = _ends(array)
    entries = array.values.slice(ends[0], ends[-1] - ends[0])
    keys = entries.field(0)
    names = memoryview(keys.buffers()[2] or b"")
    pairs = [
        b"[%b,%b]" % (name_of(bytes(names[start:end])), value)
        for (start, end), value in zip(
            pairwise(_ends(keys)), values_of(entries.field(1)), strict=True
        )
    ]
    first = ends[0]
    return [
        b"[%b]" % b",".join(pairs[start - first : end - first]) for start, end in pairwise(ends)
    ]


@lru_cache(maxsize=4096)
def _ascii_string(utf8: bytes) -> bytes:
    return encode_basestring_ascii(utf8.decode()).encode()
