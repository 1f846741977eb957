"""The Spark schemas: records as of the ``kafka`` source, metadata tables, and rows to write.

Arrow is imported by the functions that need it: Spark imports this module in every process that
looks for any Python data source.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

import pylog
from pyspark_pylog.option_values import nearest_name_hint
from pyspark_pylog.options import MILLISECONDS, OF_KEYS
from pyspark_pylog.typed_columns import spark_columns, spark_type, typed_records

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence, Set

    import pyarrow as pa

    from pylog.results import TypedRecords
    from pyspark_pylog.options import LoadOptions

# As `pylog.record_schema` has them, in Spark's types: a schema is asked for at every load(), in a
# process that has no other use for Arrow. A test holds one against the other.
_HEADERS = ArrayType(
    StructType([StructField("key", StringType()), StructField("value", BinaryType())])
)
_BATCH = StructType(
    [
        StructField("baseOffset", LongType()),
        StructField("lastOffset", LongType()),
        StructField("leaderEpoch", IntegerType()),
        StructField("producerId", LongType()),
        StructField("producerEpoch", IntegerType()),
        StructField("sequence", IntegerType()),
        StructField("isTransactional", BooleanType()),
        StructField("magic", IntegerType()),
        StructField("compression", StringType()),
        StructField("sizeInBytes", LongType()),
        StructField("segment", StringType()),
        StructField("position", LongType()),
    ]
)
CORRUPT_RECORD = "_corrupt_record"
_COLUMNS: dict[str, DataType] = {
    "key": BinaryType(),
    "value": BinaryType(),
    "topic": StringType(),
    "partition": IntegerType(),
    "offset": LongType(),
    "timestamp": TimestampType(),
    "timestampType": IntegerType(),
    "headers": _HEADERS,
    "batch": _BATCH,
    CORRUPT_RECORD: StringType(),
}
_MAY_BE_NULL = frozenset({"key", "value", "headers", CORRUPT_RECORD})
_KNOWN_OF_DAMAGE = frozenset({"topic", "partition"})
_NEVER_NULL = frozenset({"topic", "partition"})
"""In tables that have no rows about log directories."""
_SIMPLE: dict[str, DataType] = {
    "string": StringType(),
    "binary": BinaryType(),
    "int32": IntegerType(),
    "int64": LongType(),
    "bool": BooleanType(),
    "double": DoubleType(),
}
"""By the name that Arrow prints of its type."""


def record_columns(options: LoadOptions) -> Mapping[str, DataType]:
    """Return the columns of records, with their types."""
    columns = _COLUMNS
    if options.timestamp_unit == MILLISECONDS:
        columns = columns | {"timestamp": LongType()}
    typed = typed_records(options)
    return columns if typed is None else columns | spark_columns(typed)


def read_schema(options: LoadOptions) -> StructType:
    """Return the schema that the options ask for."""
    names = options.columns
    if names is None:
        left_out = {CORRUPT_RECORD}  # and what tells of typed columns
        if not options.include_headers:
            left_out.add("headers")
        if not options.include_batch_metadata:
            left_out.add("batch")
        names = tuple(name for name in _COLUMNS if name not in left_out)
    return selection(names, record_columns(options))


def check_damaged_rows_fit(schema: StructType) -> None:
    """Raise `ValueError` if a row that stands for damage does not fit into ``schema``."""
    for field in schema.fields:
        if not field.nullable and field.name not in _KNOWN_OF_DAMAGE:
            raise ValueError(
                f"the schema declares {field.name!r} NOT NULL, but mode PERMISSIVE gives a row of "
                "nulls for each damaged range"
            )


def selection(names: Sequence[str], columns: Mapping[str, DataType]) -> StructType:
    """Return the schema of the columns that option ``columns`` names."""
    for place, name in enumerate(names):
        _check_exists(name, "option columns", columns)
        if name in names[:place]:
            raise ValueError(f"option columns names {name!r} twice")
    return StructType([StructField(name, columns[name]) for name in names])


def check_columns(options: LoadOptions, schema: StructType) -> None:
    """Raise `ValueError` unless option ``columns``, if it is given, names those of ``schema``."""
    if options.columns not in (None, tuple(schema.fieldNames())):
        raise ValueError(
            f"option columns says {', '.join(options.columns or ())} and the schema "
            f"{', '.join(schema.fieldNames())}; give one of them"
        )


def check_record_schema(schema: StructType, options: LoadOptions) -> None:
    """Raise `ValueError` unless ``schema`` is a selection of the columns of records."""
    columns = record_columns(options)
    check_schema(schema, columns, _MAY_BE_NULL | (columns.keys() - _COLUMNS.keys()))


def check_schema(
    schema: StructType,
    columns: Mapping[str, DataType] = _COLUMNS,
    may_be_null: Set[str] = _MAY_BE_NULL,
) -> None:
    """Raise `ValueError` unless ``schema`` is a selection of our columns, in any order.

    A column that is never null may be declared NOT NULL; fields inside a column may not.
    """
    names = schema.fieldNames()
    if not names:
        raise ValueError("the schema has no column")
    for place, field in enumerate(schema.fields):
        _check_exists(field.name, "the schema", columns)
        if field.name in names[:place]:
            raise ValueError(f"the schema names {field.name!r} twice")
        expected = columns[field.name]
        if field.dataType.simpleString() != expected.simpleString():
            raise ValueError(
                f"the schema gives column {field.name!r} the type {field.dataType.simpleString()}, "
                f"it is {expected.simpleString()}"
            )
        if not field.nullable and field.name in may_be_null:
            msg = f"the schema declares {field.name!r} NOT NULL, but records may have none"
            raise ValueError(msg)
        if _holds_not_null(field.dataType):
            raise ValueError(
                f"the schema declares something inside column {field.name!r} NOT NULL; leave it out"
            )


def _holds_not_null(data_type: DataType) -> bool:
    if isinstance(data_type, ArrayType):
        return not data_type.containsNull or _holds_not_null(data_type.elementType)
    if isinstance(data_type, StructType):
        return any(not field.nullable or _holds_not_null(field.dataType) for field in data_type)
    return False


def _check_exists(name: str, where: str, columns: Mapping[str, DataType]) -> None:
    if name not in columns:
        hint = nearest_name_hint(name, columns)
        listed = ", ".join(columns)
        msg = f"{where} names {name!r}, which is not a column{hint} The columns are: {listed}"
        raise ValueError(msg)


def table_schema(
    table: str, columns: Sequence[str] | None = None, typed: TypedRecords | None = None
) -> StructType:
    """Return the Spark schema of a table, or of the columns of it that are named."""
    names = pylog.jobs.metadata_table(table).schema.names
    return selection(names if columns is None else columns, _columns(table, typed))


def typed_latest(options: LoadOptions) -> TypedRecords | None:
    """Return what decodes the last records of keys, if that is what is read."""
    return typed_records(options) if options.table == OF_KEYS else None


def check_table_schema(table: str, schema: StructType, typed: TypedRecords | None = None) -> None:
    """Raise `ValueError` unless ``schema`` is a selection of the table's columns, in any order."""
    known = _columns(table, typed)
    never_null = frozenset() if pylog.jobs.metadata_table(table).has_directory_rows else _NEVER_NULL
    check_schema(schema, known, known.keys() - never_null)


def arrow_table_schema(
    table: str, schema: StructType, typed: TypedRecords | None = None
) -> pa.Schema:
    """Return the Arrow schema that Spark demands of the batches for a checked ``schema``."""
    import pyarrow as pa  # noqa: PLC0415

    microseconds = pa.timestamp("us", tz="UTC")
    own = pylog.jobs.metadata_table(table).schema
    whole = own if typed is None else typed.schema(schema.fieldNames())
    fields = []
    for field in schema:
        kind = whole.field(field.name).type
        if typed is not None and field.name in typed.columns:
            kind = spark_type(kind).arrow
        demanded = microseconds if pa.types.is_timestamp(kind) else kind
        fields.append(pa.field(field.name, demanded, field.nullable))
    return pa.schema(fields)


def _columns(table: str, typed: TypedRecords | None) -> dict[str, DataType]:
    whole = pylog.jobs.metadata_table(table).schema
    known = {field.name: _spark_type(field.type) for field in whole}
    if typed is None:
        return known
    return {**known, **spark_columns(typed), CORRUPT_RECORD: StringType()}


def _spark_type(kind: pa.DataType) -> DataType:
    import pyarrow as pa  # noqa: PLC0415

    if pa.types.is_timestamp(kind):
        return TimestampType()
    if pa.types.is_list(kind):
        return ArrayType(_spark_type(kind.value_type))
    if pa.types.is_struct(kind):
        return StructType([StructField(each.name, _spark_type(each.type)) for each in kind])
    return _SIMPLE[str(kind)]


class _Column(NamedTuple):
    """What a column must be, and how a user makes it so."""

    is_possible: Callable[[DataType], bool]
    expected: str
    remedy: str


def _is_text_or_bytes(kind: DataType) -> bool:
    return isinstance(kind, StringType | BinaryType)


def is_headers(kind: DataType) -> bool:
    """Return whether a type is the type of column ``headers``."""
    if not isinstance(kind, ArrayType) or not isinstance(kind.elementType, StructType):
        return False
    fields = kind.elementType.fields
    return [(each.name, type(each.dataType)) for each in fields] == [
        ("key", StringType),
        ("value", BinaryType),
    ]


_HEADERS_SQL = "array<struct<key:string,value:binary>>"
_WRITTEN = {
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
        is_headers,
        _HEADERS_SQL,
        "array(named_struct('key', 'name', 'value', CAST('text' AS BINARY)))",
    ),
    "timestamp": _Column(
        lambda kind: isinstance(kind, TimestampType),
        "timestamp",
        "CAST(timestamp AS TIMESTAMP), or timestamp_millis(timestamp) for milliseconds since 1970; "
        "a column that is not the record's time needs another name",
    ),
}


def columns_to_write(
    schema: StructType, *, has_topic: bool, typed: Collection[str] = ()
) -> tuple[str, ...]:
    """Return the names of the columns that make up a record, in the order of ``schema``.

    Those that are ``typed`` are encoded by a schema, which says what they may be.
    """
    names = schema.fieldNames()
    wanted = [name for name in _WRITTEN if not (has_topic and name == "topic")]
    chosen = [field for field in schema.fields if field.name in wanted]
    if "value" not in names:
        hint = nearest_name_hint("value", names)
        raise ValueError(
            f"the DataFrame has no column 'value'{hint} Select one, for example "
            "to_json(struct(*)) AS value"
        )
    if "topic" not in names and not has_topic:
        raise ValueError(
            "nothing says which topic the rows go to: give option topic, for example "
            '.option("topic", "orders"), or a column named topic'
        )
    for field in chosen:
        column = _WRITTEN[field.name]
        if names.count(field.name) > 1:
            msg = f"the DataFrame has more than one column {field.name!r}: select or rename one"
            raise ValueError(msg)
        if field.name not in typed and not column.is_possible(field.dataType):
            raise ValueError(
                f"column {field.name!r} is of type {field.dataType.simpleString()}, expected "
                f"{column.expected}: write {column.remedy}"
            )
    return tuple(field.name for field in chosen)
