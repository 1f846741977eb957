"""Records that come one by one as Python objects, to Arrow record batches.

=================== ==========================================================================
object              fields
=================== ==========================================================================
`Record`            as it is; its offset, timestamp type and sequence are left alone
mapping             by column name; the value must be there, others need not
tuple               key, value, and perhaps timestamp and headers
=================== ==========================================================================

Keys and values are bytes, text (UTF-8) or None; a timestamp is in ms, None for now; headers are
pairs of name and bytes or None, or a mapping.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from pylog.columnar.arrow_schema import HEADERS_TYPE
from pylog.columnar.encode_input import is_binary_type, is_headers_type, is_timestamp_type
from pylog.record.record import Record

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator

    from pylog.writing.column_encoder import ColumnEncoder


ROWS_AT_ONCE = 16_384
BYTES_AT_ONCE = 8 << 20

ROW_SCHEMA = pa.schema(
    [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("timestamp", pa.int64()),
        ("headers", HEADERS_TYPE),
    ]
)


class RecordRow(NamedTuple):
    """A record before it has an offset."""

    key: bytes | None
    value: bytes | None
    timestamp: int | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()


class ColumnNames(NamedTuple):
    """Under which names a record's parts are found; None: it has no such part."""

    key: str | None
    value: str
    timestamp: str | None
    headers: str | None
    partition: str | None = None


def rows_to_batch(rows: Iterable[RecordRow]) -> pa.RecordBatch:
    """Return the rows as columns ``key``, ``value``, ``timestamp`` (ms or null), ``headers``."""
    columns = list(zip(*rows, strict=True)) or [()] * len(ROW_SCHEMA)
    keys, values, timestamps, headers = columns
    return pa.record_batch(
        [
            pa.array(keys, pa.binary()),
            pa.array(values, pa.binary()),
            pa.array(timestamps, pa.int64()),
            pa.array([each or None for each in headers], HEADERS_TYPE),
        ],
        schema=ROW_SCHEMA,
    )


def batches_of_objects(
    records: Iterable[object],
    names: ColumnNames,
    encoders: Mapping[str, ColumnEncoder] | None = None,
) -> Iterator[tuple[pa.RecordBatch, list[int] | None]]:
    """Yield record batches of some thousand rows, and the rows' partitions if they have any."""
    rows: list[RecordRow] = []
    partitions: list[int] = []
    size = 0
    for index, item in enumerate(records):
        try:
            row = _row_of(item, names, encoders or {})
            if names.partition is not None:
                partitions.append(_partition_of(item, names.partition))
        except ValueError as error:
            if rows:
                yield rows_to_batch(rows), partitions[: len(rows)] or None
            msg = f"record {index}: {error}"
            raise ValueError(msg) from error
        rows.append(row)
        size += len(row.key or b"") + len(row.value or b"")
        if len(rows) >= ROWS_AT_ONCE or size >= BYTES_AT_ONCE:
            yield rows_to_batch(rows), partitions or None
            rows, partitions, size = [], [], 0
    if rows:
        yield rows_to_batch(rows), partitions or None


def _row_of(item: object, names: ColumnNames, encoders: Mapping[str, ColumnEncoder]) -> RecordRow:
    key: object
    timestamp: object = None
    headers: object = ()
    if isinstance(item, Record):
        key, value, timestamp, headers = item.key, item.value, item.timestamp, item.headers
    elif isinstance(item, Mapping):
        if names.value not in item:
            msg = f"it has no {names.value!r}; it has {', '.join(map(repr, item)) or 'nothing'}"
            raise ValueError(msg)
        key, value, timestamp, headers = (
            None if name is None else item.get(name)
            for name in (names.key, names.value, names.timestamp, names.headers)
        )
    elif isinstance(item, tuple) and 2 <= len(item) <= 4:
        key, value, timestamp, headers = (*item, None, ())[:4] if len(item) < 4 else item
    else:
        msg = (
            f"{type(item).__name__} is neither a Record, nor a mapping, nor a tuple of key, "
            "value and perhaps timestamp and headers"
        )
        raise ValueError(msg)
    return encoded_row(
        encoders,
        {"key": key, "value": value},
        _timestamp_of(timestamp),
        _headers_of(headers),
        _bytes_of,
    )


def encoded_row(
    encoders: Mapping[str, ColumnEncoder],
    contents: Mapping[str, object],
    timestamp: int | None,
    headers: tuple[tuple[str, bytes | None], ...],
    plain: Callable[[object, str], bytes | None],
    *,
    is_json: bool = False,
) -> RecordRow:
    """Return a record whose key and value are encoded, or what ``plain`` makes of them."""
    made = {}
    for name, content in contents.items():
        encoder = encoders.get(name)
        if encoder is None:
            made[name] = plain(content, name)
            continue
        made[name] = encoder.encode(content, is_json=is_json)
        headers = encoder.headers(headers, made[name])
    return RecordRow(made["key"], made["value"], timestamp, headers)


def _partition_of(item: object, name: str) -> int:
    partition = item.get(name) if isinstance(item, Mapping) else None
    if not isinstance(partition, int) or isinstance(partition, bool) or partition < 0:
        msg = f"its partition, {name!r}, is {partition!r}, expected a number from 0 on"
        raise ValueError(msg)
    return partition


def _bytes_of(value: object, what: str) -> bytes | None:
    if value is None or isinstance(value, bytes):
        return value
    if isinstance(value, bytearray | memoryview):
        return bytes(value)
    if isinstance(value, str):
        return value.encode()
    msg = f"its {what} is of type {type(value).__name__}, expected bytes, text or None"
    raise ValueError(msg)


def _timestamp_of(value: object) -> int | None:
    if value is None or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    msg = f"its timestamp is {value!r}, expected milliseconds as int, or None"
    raise ValueError(msg)


def _headers_of(value: Any) -> tuple[tuple[str, bytes | None], ...]:  # noqa: ANN401 - checked here
    if not value:
        return ()
    pairs = value.items() if isinstance(value, Mapping) else value
    try:
        headers = tuple((name, content) for name, content in pairs)
    except (TypeError, ValueError) as error:
        msg = "its headers are not pairs of name and value"
        raise ValueError(msg) from error
    for name, _ in headers:
        if not isinstance(name, str):
            msg = f"a header's name is {name!r}, expected text"
            raise ValueError(msg)  # noqa: TRY004 - the caller names the record
    return tuple((name, _bytes_of(content, f"header {name!r}")) for name, content in headers)


_OPTIONAL = ("key", "timestamp", "headers")
_BYTES = (is_binary_type, "is binary or text", "cast('string')")
_TYPES: dict[str, tuple[Callable[[pa.DataType], bool], str, str]] = {
    "key": _BYTES,
    "value": _BYTES,
    "timestamp": (
        is_timestamp_type,
        "is a timestamp, or int64 milliseconds",
        "cast('timestamp[ms]')",
    ),
    "headers": (
        is_headers_type,
        "are list<struct<key: string, value: binary>>",
        "cast(pa.list_(pa.struct([('key', pa.string()), ('value', pa.binary())])))",
    ),
    "partition": (pa.types.is_integer, "is an integer", "cast('int32')"),
}
"""What each part of a record may be, in words, and a cast that may get there."""


def find_columns(
    schema: pa.Schema, names: ColumnNames, typed: Collection[str] = ()
) -> dict[str, str]:
    """Return the column of each part of a record; those that are ``typed`` are of any type."""
    columns = {}
    for part, (is_type, expected, cast) in _TYPES.items():
        name = getattr(names, part)
        if name is None:
            if part not in _OPTIONAL or part not in schema.names:
                continue
            name = part
        if schema.names.count(name) != 1:
            how_many = "no" if name not in schema.names else "more than one"
            msg = f"{how_many} column {name!r} for {part}; columns: {', '.join(schema.names)}"
            raise ValueError(msg)
        kind = schema.field(name).type
        if part not in typed and not is_type(kind):
            msg = (
                f"column {name!r} is of type {kind}; a record's {part} {expected}: cast the "
                f"column, for example table.set_column(table.schema.get_field_index({name!r}), "
                f"{name!r}, table[{name!r}].{cast})"
            )
            if part in ("key", "value"):
                msg += f"; in pandas, frame[{name!r}] = frame[{name!r}].astype('string')"
            raise ValueError(msg)
        columns[part] = name
    return columns
