"""The columns of a DataFrame that is written: those of Spark's ``kafka`` sink, and ``timestamp``.

Spark checks nothing of them for a Python data source. Here it is done on the driver, before any
task runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    StringType,
    StructType,
    TimestampType,
)

from pyspark_pylog.nearest_name import nearest_name_hint

if TYPE_CHECKING:
    from collections.abc import Callable


class _Column(NamedTuple):
    """What a column must be, and how a user makes it so."""

    is_possible: Callable[[DataType], bool]
    expected: str
    remedy: str


def _is_text_or_bytes(kind: DataType) -> bool:
    return isinstance(kind, StringType | BinaryType)


def _is_headers(kind: DataType) -> bool:
    if not isinstance(kind, ArrayType) or not isinstance(kind.elementType, StructType):
        return False
    fields = kind.elementType.fields
    return [(each.name, type(each.dataType)) for each in fields] == [
        ("key", StringType),
        ("value", BinaryType),
    ]


_HEADERS = "array<struct<key:string,value:binary>>"
_COLUMNS = {
    "key": _Column(_is_text_or_bytes, "string or binary", "CAST(key AS STRING)"),
    "value": _Column(
        _is_text_or_bytes,
        "string or binary",
        "CAST(value AS STRING), or to_json(struct(*)) for a whole row",
    ),
    "topic": _Column(lambda kind: isinstance(kind, StringType), "string", "CAST(topic AS STRING)"),
    "partition": _Column(
        lambda kind: isinstance(kind, IntegerType), "int", "CAST(partition AS INT)"
    ),
    "headers": _Column(
        _is_headers,
        _HEADERS,
        "array(named_struct('key', 'name', 'value', CAST('text' AS BINARY)))",
    ),
    "timestamp": _Column(
        lambda kind: isinstance(kind, TimestampType),
        "timestamp",
        "CAST(timestamp AS TIMESTAMP), or timestamp_millis(timestamp) for milliseconds since 1970; "
        "a column that is not the record's time needs another name",
    ),
}


def columns_to_write(schema: StructType, *, has_topic: bool) -> tuple[str, ...]:
    """Return the names of the columns that make up a record, in the order of ``schema``.

    All other columns are left out, as the ``kafka`` sink does: the rows of a read, with ``offset``
    and ``timestampType``, can be written as they are.

    Parameters
    ----------
    schema
        Of the DataFrame.
    has_topic
        Whether an option names the topic of all rows; a column ``topic`` is then left out, too.

    Raises
    ------
    ValueError
        There is no column ``value``, or nothing that says the topic; or a column is of another
        type than it must be, or there twice. The text names the column and what to write.
    """
    names = schema.fieldNames()
    wanted = [name for name in _COLUMNS if not (has_topic and name == "topic")]
    chosen = [field for field in schema.fields if field.name in wanted]
    if "value" not in names:
        hint = nearest_name_hint("value", names)
        msg = (
            f"the DataFrame has no column 'value'{hint} Select one, for example "
            "to_json(struct(*)) AS value"
        )
        raise ValueError(msg)
    if "topic" not in names and not has_topic:
        msg = (
            "nothing says which topic the rows go to: give option topic, for example "
            '.option("topic", "orders"), or a column named topic'
        )
        raise ValueError(msg)
    for field in chosen:
        column = _COLUMNS[field.name]
        if names.count(field.name) > 1:
            msg = f"the DataFrame has more than one column {field.name!r}: select or rename one"
            raise ValueError(msg)
        if not column.is_possible(field.dataType):
            msg = (
                f"column {field.name!r} is of type {field.dataType.simpleString()}, expected "
                f"{column.expected}: write {column.remedy}"
            )
            raise ValueError(msg)
    return tuple(field.name for field in chosen)
