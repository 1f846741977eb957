"""The Spark schema of a read: the columns of the ``kafka`` source, all nullable, in its order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from pyspark_pylog.nearest_name import nearest_name_hint

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence, Set

    from pyspark_pylog.options import ReadOptions

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
    "_corrupt_record": StringType(),
}
_MAY_BE_NULL = frozenset({"key", "value", "headers", "_corrupt_record"})
_KNOWN_OF_DAMAGE = frozenset({"topic", "partition"})


def read_schema(options: ReadOptions) -> StructType:
    """Return the schema that the options ask for.

    Raises
    ------
    ValueError
        Option ``columns`` names a column that does not exist, or one twice.
    """
    names = options.columns
    if names is None:
        left_out = {"_corrupt_record"}
        if not options.include_headers:
            left_out.add("headers")
        if not options.include_batch_metadata:
            left_out.add("batch")
        names = tuple(name for name in _COLUMNS if name not in left_out)
    return selection(names, _COLUMNS)


def check_damaged_rows_fit(schema: StructType) -> None:
    """Raise `ValueError` if a row that stands for damage does not fit into ``schema``."""
    for field in schema.fields:
        if not field.nullable and field.name not in _KNOWN_OF_DAMAGE:
            msg = (
                f"the schema declares {field.name!r} NOT NULL, but mode PERMISSIVE gives a row of "
                "nulls for each damaged range"
            )
            raise ValueError(msg)


def selection(names: Sequence[str], columns: Mapping[str, DataType]) -> StructType:
    """Return the schema of the columns that option ``columns`` names.

    Raises
    ------
    ValueError
        One does not exist, or is named twice.
    """
    for place, name in enumerate(names):
        _check_exists(name, "option columns", columns)
        if name in names[:place]:
            msg = f"option columns names {name!r} twice"
            raise ValueError(msg)
    return StructType([StructField(name, columns[name]) for name in names])


def check_schema(
    schema: StructType,
    columns: Mapping[str, DataType] = _COLUMNS,
    may_be_null: Set[str] = _MAY_BE_NULL,
) -> None:
    """Raise `ValueError` unless ``schema`` is a selection of our columns, in any order.

    A column that is never null may be declared NOT NULL; fields inside a column may not.

    Parameters
    ----------
    schema
        Of the user.
    columns, may_be_null
        All columns with their types, and which of them may be null; those of records if not given.
    """
    names = schema.fieldNames()
    if not names:
        msg = "the schema has no column"
        raise ValueError(msg)
    for place, field in enumerate(schema.fields):
        _check_exists(field.name, "the schema", columns)
        if field.name in names[:place]:
            msg = f"the schema names {field.name!r} twice"
            raise ValueError(msg)
        expected = columns[field.name]
        if field.dataType.simpleString() != expected.simpleString():
            msg = (
                f"the schema gives column {field.name!r} the type {field.dataType.simpleString()}, "
                f"it is {expected.simpleString()}"
            )
            raise ValueError(msg)
        if not field.nullable and field.name in may_be_null:
            msg = f"the schema declares {field.name!r} NOT NULL, but records may have none"
            raise ValueError(msg)
        if _holds_not_null(field.dataType):
            msg = (
                f"the schema declares something inside column {field.name!r} NOT NULL; leave it out"
            )
            raise ValueError(msg)


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
