r"""Records with typed keys and values as JSON lines, column by column.

They are the lines of `pylog.record_lines.record_json` with ``"values":"typed"``, in which a typed
value is JSON:

==================  ===============================================================================
integer, decimal    a number with all digits
float, double       a number; ``"NaN"``, ``"Infinity"`` and ``"-Infinity"`` are strings
boolean, text       as JSON has them
bytes, fixed        base64
date, time          ``"YYYY-MM-DD"``, ``"hh:mm:ss.sss"``
timestamp           ISO 8601 with ``Z``; without, if it is local
record, map         an object
array               an array
union               the value alone
duration            an object: ``months``, ``days``, ``milliseconds``; of Protobuf: ``"1.5s"``
==================  ===============================================================================

A date or a time whose year has no four digits is the number that is stored.

What could not be decoded is null, and the line has a further member: ``"undecodable":{"reason":…,
"key":…, "value":…}``, the latter in base64 if they were to be decoded.
"""

from __future__ import annotations

from json.encoder import encode_basestring_ascii
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from pylog.columnar.arrow_buffers import fixed_width_array, present_rows
from pylog.columnar.arrow_schema import CORRUPT_RECORD, TYPED, UNION_MEMBER
from pylog.record_lines.arrow_functions import cast, if_else, replace_substring
from pylog.record_lines.line_template import Style
from pylog.record_lines.record_json import JSON_COLUMNS, json_strings, typed_lines
from pylog.record_lines.text_column import ends_of, joined, joined_lists, text_column

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    import numpy.typing as npt

_RAW = "_raw"
_YEAR_1 = -719_162  # days from 1970-01-01
_YEAR_10000 = 2_932_897
_TICKS_A_DAY = {"s": 86_400, "ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}


def needed_columns(columns: Collection[str], *, shows_undecodable: bool) -> tuple[str, ...]:
    """Return the columns that `typed_json_lines` needs; ``columns`` are those that are typed."""
    raw = (*(f"{each}{_RAW}" for each in columns), CORRUPT_RECORD)
    return (*JSON_COLUMNS, *raw) if shows_undecodable else JSON_COLUMNS


def typed_json_lines(batch: pa.RecordBatch) -> Iterator[memoryview]:
    """Yield the lines of a batch's records; rows that stand for damage have none."""
    if batch.column("offset").null_count:
        is_record = fixed_width_array(present_rows(batch.column("offset")))
        batch = batch.filter(is_record)
    typed = {
        name: _as_binary(json_texts(batch.column(name)))
        for name in ("key", "value")
        if batch.schema.field(name).metadata == TYPED
    }
    yield from typed_lines(batch, typed, _undecodable(batch))


def with_json_values(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return a batch with the JSON of typed keys and values in their place; null stays null."""
    for place, field in enumerate(batch.schema):
        if field.metadata == TYPED:
            column = batch.column(place)
            texts = if_else(fixed_width_array(present_rows(column)), json_texts(column), None)
            as_bytes = pa.field(field.name, pa.binary())
            batch = batch.set_column(place, as_bytes, _as_binary(texts))
    return batch


def _as_binary(texts: pa.Array) -> pa.Array:
    return cast(cast(texts, pa.string()), pa.binary())


def _undecodable(batch: pa.RecordBatch) -> dict[int, str]:
    if CORRUPT_RECORD not in batch.schema.names:
        return {}
    reasons = batch.column(CORRUPT_RECORD)
    if reasons.null_count == len(reasons):
        return {}
    raw = {
        name: json_strings(batch.column(f"{name}{_RAW}"), Style.BASE64)
        for name in ("key", "value")
        if f"{name}{_RAW}" in batch.schema.names
    }
    members = {}
    for row in np.flatnonzero(present_rows(reasons)).tolist():
        reason = encode_basestring_ascii(reasons[row].as_py())
        parts = [f'"reason":{reason}']
        parts += [f'"{name}":{texts[row].as_py()}' for name, texts in raw.items()]
        members[row] = f',"undecodable":{{{",".join(parts)}}}'
    return members


def json_texts(column: pa.Array, *, names_members: bool = False) -> pa.Array:
    """Return each value of a column as JSON, as text; nulls are ``null``.

    With ``names_members`` a union's value is an object that says which member it is.
    """
    kind = column.type
    if pa.types.is_null(kind):
        return pa.repeat(text_column([b"null"])[0], len(column))
    for is_kind, texts_of_parts in _NESTED:
        if is_kind(kind):
            return _with_nulls(texts_of_parts(column, names_members=names_members), column)
    for is_kind, texts_of in _WRITERS:
        if is_kind(kind):
            return _with_nulls(texts_of(column), column)
    raise TypeError(f"no JSON for {kind}")


def _with_nulls(texts: pa.Array, column: pa.Array) -> pa.Array:
    if not column.null_count:
        return texts
    return _where(~present_rows(column), b"null", texts)


def _where(mask: npt.NDArray[np.bool_], word: bytes, texts: pa.Array) -> pa.Array:
    return if_else(fixed_width_array(mask), text_column([word])[0], texts)


def _plain(column: pa.Array) -> pa.Array:
    return cast(column, pa.large_string())


def _of_floats(column: pa.Array) -> pa.Array:
    texts = _plain(column)
    dtype = np.float32 if column.type == pa.float32() else np.float64
    values = np.frombuffer(column.buffers()[1], dtype)[column.offset :][: len(column)]
    if (is_negative_zero := (values == 0) & np.signbit(values)).any():
        texts = _where(is_negative_zero, b"-0.0", texts)  # -0 is an integer to many parsers
    if not np.isfinite(values).all():
        texts = _where(np.isnan(values), b'"NaN"', texts)
        texts = _where(values == np.inf, b'"Infinity"', texts)
        texts = _where(values == -np.inf, b'"-Infinity"', texts)
    return texts


def _of_texts(column: pa.Array) -> pa.Array:
    return json_strings(column)


def _of_bytes(column: pa.Array) -> pa.Array:
    return json_strings(cast(column, pa.binary()), Style.BASE64)


def _of_dates(column: pa.Array) -> pa.Array:
    days = np.frombuffer(column.buffers()[1], np.int32)[column.offset :][: len(column)]
    is_calendar = (days >= _YEAR_1) & (days < _YEAR_10000)
    return _calendar(column, days, is_calendar, "")


def _of_timestamps(column: pa.Array) -> pa.Array:
    ticks = np.frombuffer(column.buffers()[1], np.int64)[column.offset :][: len(column)]
    days = ticks // _TICKS_A_DAY[column.type.unit]
    is_calendar = (days >= _YEAR_1) & (days < _YEAR_10000)
    # Without the zone, since Arrow would look it up in the system's files.
    local = column.view(pa.timestamp(column.type.unit))
    return _calendar(local, ticks, is_calendar, "" if column.type.tz is None else "Z")


def _calendar(
    column: pa.Array,
    numbers: npt.NDArray[np.int32 | np.int64],
    is_calendar: npt.NDArray[np.bool_],
    zone: str,
) -> pa.Array:
    texts = joined('"', replace_substring(_plain(column), " ", "T"), f'{zone}"', null="")
    if is_calendar.all():
        return texts
    return if_else(fixed_width_array(is_calendar), texts, _plain(fixed_width_array(numbers)))


def _of_times(column: pa.Array) -> pa.Array:
    return joined('"', _plain(column), '"', null="")


def _of_durations(column: pa.Array) -> pa.Array:
    """Return seconds, as Protobuf's JSON has them: ``"-1.500000000s"``."""
    seconds = column.view(pa.int64()).cast(pa.decimal128(19, 0))
    places = {"s": 0, "ms": 3, "us": 6, "ns": 9}[column.type.unit]
    scaled = pa.Array.from_buffers(
        pa.decimal128(19, places), len(column), seconds.buffers(), offset=seconds.offset
    )
    return joined('"', _plain(scaled), 's"', null="")


def _of_structs(column: pa.Array, *, names_members: bool) -> pa.Array:
    fields = list(column.type)
    if not fields:
        return pa.repeat(text_column([b"{}"])[0], len(column))
    if fields[0].metadata == UNION_MEMBER and not names_members:
        return _of_unions(column)
    parts: list[pa.Array | str] = []
    for number, each in enumerate(fields):
        name = encode_basestring_ascii(each.name)
        parts += [
            f"{',' if number else '{'}{name}:",
            json_texts(column.field(number), names_members=names_members),
        ]
    return joined(*parts, "}")


def _of_unions(column: pa.Array) -> pa.Array:
    texts = pa.repeat(text_column([b"null"])[0], len(column))
    for number in range(column.type.num_fields):
        member = column.field(number)
        if member.null_count < len(member):
            is_member = fixed_width_array(present_rows(member))
            texts = if_else(is_member, json_texts(member), texts)
    return texts


def _of_lists(column: pa.Array, *, names_members: bool) -> pa.Array:
    ends = ends_of(column)
    entries = column.values.slice(ends[0], ends[-1] - ends[0])
    texts = json_texts(entries, names_members=names_members)
    return joined("[", joined_lists(ends - ends[0], texts), "]")


def _of_maps(column: pa.Array, *, names_members: bool) -> pa.Array:
    ends = ends_of(column)
    first, count = ends[0], ends[-1] - ends[0]
    keys, values = column.keys.slice(first, count), column.items.slice(first, count)
    names = json_texts(keys)
    if not pa.types.is_string(keys.type):  # integers and booleans, of Protobuf
        names = joined('"', names, '"')
    entries = joined(names, ":", json_texts(values, names_members=names_members))
    return joined("{", joined_lists(ends - first, entries), "}")


_NESTED: tuple[tuple[Callable[[pa.DataType], bool], Callable[..., pa.Array]], ...] = (
    (pa.types.is_struct, _of_structs),
    (pa.types.is_map, _of_maps),
    (pa.types.is_list, _of_lists),
)
_WRITERS: tuple[tuple[Callable[[pa.DataType], bool], Callable[[pa.Array], pa.Array]], ...] = (
    (pa.types.is_boolean, _plain),
    (pa.types.is_integer, _plain),
    (pa.types.is_floating, _of_floats),
    (pa.types.is_decimal, _plain),
    (pa.types.is_string, _of_texts),
    (pa.types.is_binary, _of_bytes),
    (pa.types.is_fixed_size_binary, _of_bytes),
    (pa.types.is_date32, _of_dates),
    (pa.types.is_timestamp, _of_timestamps),
    (pa.types.is_time, _of_times),
    (pa.types.is_duration, _of_durations),
)
