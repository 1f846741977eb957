"""Which columns of a user's table are which part of a record, and of types that can be stored."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from pylog.columnar.encode_input import is_binary_type, is_headers_type, is_timestamp_type

if TYPE_CHECKING:
    from collections.abc import Callable

    from pylog.writing.record_rows import ColumnNames

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


def find_columns(schema: pa.Schema, names: ColumnNames) -> dict[str, str]:
    """Return the column of each part of a record that ``schema`` has.

    Parameters
    ----------
    schema
        Of the user's table.
    names
        The columns named; those that are not default to the one of the part's name, if any.

    Raises
    ------
    ValueError
        A column that was named is not there, or there twice, or one is of a type that cannot be
        stored as that part.
    """
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
        if not is_type(kind):
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
