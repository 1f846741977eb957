"""The columns of an Avro type: its Arrow type, and the buffers that a decoder fills for it.

======================== =========================================================================
Avro                     Arrow
======================== =========================================================================
null, boolean, …         null, bool, int32, int64, float, double, binary, string
record                   struct of its fields
enum                     string: the symbol
array, map               list, map with keys of type string
fixed                    fixed-size binary
[null, T]                T
union of int and long    int64; int, float and double: double
other unions             struct of ``member0``, ``member1``, …, all null but one
decimal                  decimal128, or decimal256 beyond 38 digits
date, time-*             date32, time32[ms], time64[us]
timestamp-*              timestamp[ms], [us], [ns] in UTC; local-timestamp-*: without a zone
uuid                     string, whatever it is stored as
duration                 struct of ``months``, ``days``, ``milliseconds``
======================== =========================================================================

Every array or map starts a *level*: its items are the slots of that level, and the slots of level 0
are the payloads. All buffers of a level have as many slots.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from pylog.columnar.arrow_schema import UNION_MEMBER
from pylog.errors import InvalidSchemaError

if TYPE_CHECKING:
    from pylog.typed.avro_schema import AvroType

MOST_BUFFERS = 20_000
"""Types that use others twice, which use others twice, have more columns than memory can hold."""


class Form(IntEnum):
    """What a buffer has for each slot.

    Attributes
    ----------
    BITS
        One bit.
    NUMBERS, WORDS
        A number of 4 or 8 bytes; one of 16 or 32.
    FIXED
        Bytes, as many as the type has.
    SPANS
        A length, and outside of the buffer a position: ends, once the bytes are copied.
    ENDS
        Where a list ends.
    """

    BITS = 0
    NUMBERS = 1
    WORDS = 2
    FIXED = 3
    SPANS = 4
    ENDS = 5


class ColumnBuffer(NamedTuple):
    """A buffer of a level's slots, with so many bytes for each if that is not its form's."""

    form: Form
    level: int
    size: int = 4


_DURATION_TYPE = pa.struct(
    [("months", pa.int64()), ("days", pa.int64()), ("milliseconds", pa.int64())]
)
_PRIMITIVE_TYPES = {
    "boolean": (pa.bool_(), Form.BITS, 0),
    "int": (pa.int32(), Form.NUMBERS, 4),
    "long": (pa.int64(), Form.NUMBERS, 8),
    "float": (pa.float32(), Form.NUMBERS, 4),
    "double": (pa.float64(), Form.NUMBERS, 8),
    "bytes": (pa.binary(), Form.SPANS, 4),
    "string": (pa.string(), Form.SPANS, 4),
    "enum": (pa.string(), Form.SPANS, 4),
}
_LOGICAL_TYPES = {
    "date": pa.date32(),
    "time-millis": pa.time32("ms"),
    "time-micros": pa.time64("us"),
    "timestamp-millis": pa.timestamp("ms", "UTC"),
    "timestamp-micros": pa.timestamp("us", "UTC"),
    "timestamp-nanos": pa.timestamp("ns", "UTC"),
    "local-timestamp-millis": pa.timestamp("ms"),
    "local-timestamp-micros": pa.timestamp("us"),
    "local-timestamp-nanos": pa.timestamp("ns"),
}
_DECIMAL128_DIGITS = 38


@dataclass(slots=True)
class AvroColumn:
    """A type's column; buffers are numbers in the `Layout`.

    Attributes
    ----------
    avro
        The type; of a union with null and one other, that other.
    form
        ``leaf``, ``null``, ``record``, ``list``, ``map`` or ``union``.
    level
        Whose slots its values are.
    validity
        The buffer of bits for values that may be null; None if none can.
    data
        A leaf's values, or where the lists end.
    items_level
        The level of a list's items.
    """

    avro: AvroType
    form: str
    type: pa.DataType
    level: int
    validity: int | None = None
    data: int = -1
    items_level: int = -1
    children: list[AvroColumn] = field(default_factory=list)


class Layout:
    """Makes columns, and knows the buffers and levels of all of them."""

    def __init__(self, reader: AvroType) -> None:
        self.buffers: list[ColumnBuffer] = []
        self.level_count = 1
        self.root = self._column(reader, 0, nullable=True)

    def _buffer(self, form: Form, level: int, size: int = 4) -> int:
        if len(self.buffers) == MOST_BUFFERS:
            raise InvalidSchemaError(f"the schema has more than {MOST_BUFFERS} columns")
        self.buffers.append(ColumnBuffer(form, level, size))
        return len(self.buffers) - 1

    def _column(self, avro: AvroType, level: int, *, nullable: bool = False) -> AvroColumn:
        if avro.kind == "union":
            return self._union(avro, level, nullable=nullable)
        if avro.kind == "null":
            return AvroColumn(
                avro, "null", pa.null(), level, self._validity(level, nullable=nullable)
            )
        if avro.kind == "record":
            column = AvroColumn(
                avro, "record", pa.null(), level, self._validity(level, nullable=nullable)
            )
            column.children = [self._column(each.type, level) for each in avro.fields]
            column.type = pa.struct(
                [
                    pa.field(each.name, child.type)
                    for each, child in zip(avro.fields, column.children, strict=True)
                ]
            )
            return column
        if avro.kind in ("array", "map"):
            return self._repeated(avro, level, nullable=nullable)
        return self._leaf(avro, leaf_type(avro), level, nullable=nullable)

    def _leaf(
        self, avro: AvroType, kind: tuple[pa.DataType, Form, int], level: int, *, nullable: bool
    ) -> AvroColumn:
        arrow, form, size = kind
        validity = self._validity(level, nullable=nullable)
        return AvroColumn(avro, "leaf", arrow, level, validity, self._buffer(form, level, size))

    def _validity(self, level: int, *, nullable: bool) -> int | None:
        return self._buffer(Form.BITS, level, 0) if nullable else None

    def _repeated(self, avro: AvroType, level: int, *, nullable: bool) -> AvroColumn:
        assert avro.items is not None  # noqa: S101 - of every array and map
        column = AvroColumn(
            avro, "list", pa.null(), level, self._validity(level, nullable=nullable)
        )
        column.data = self._buffer(Form.ENDS, level)
        column.items_level = inner = self.level_count
        self.level_count += 1
        if avro.kind == "map":
            column.form = "map"
            key = AvroColumn(
                avro, "leaf", pa.string(), inner, None, self._buffer(Form.SPANS, inner)
            )
            column.children = [key, self._column(avro.items, inner)]
            column.type = pa.map_(pa.string(), column.children[1].type)
        else:
            column.children = [self._column(avro.items, inner)]
            column.type = pa.list_(column.children[0].type)
        return column

    def _union(self, avro: AvroType, level: int, *, nullable: bool) -> AvroColumn:
        branches = [each for each in avro.branches if each.kind != "null"]
        nullable |= len(branches) < len(avro.branches)
        if not branches:
            null = self._validity(level, nullable=True)
            return AvroColumn(avro.branches[0], "null", pa.null(), level, null)
        if len(branches) == 1:
            return self._column(branches[0], level, nullable=nullable)
        if (common := common_number(branches)) is not None:
            return self._leaf(avro, _PRIMITIVE_TYPES[common], level, nullable=nullable)
        column = AvroColumn(
            avro, "union", pa.null(), level, self._validity(level, nullable=nullable)
        )
        column.children = [self._column(each, level, nullable=True) for each in branches]
        column.type = pa.struct(
            [
                pa.field(f"member{number}", child.type, metadata=UNION_MEMBER)
                for number, child in enumerate(column.children)
            ]
        )
        return column


def leaf_type(avro: AvroType) -> tuple[pa.DataType, Form, int]:
    """Return the Arrow type of a type without parts, its buffer's form, and bytes for a slot."""
    if avro.logical == "decimal":
        if avro.precision > _DECIMAL128_DIGITS:
            return pa.decimal256(avro.precision, avro.scale), Form.WORDS, 32
        return pa.decimal128(avro.precision, avro.scale), Form.WORDS, 16
    if avro.logical in _LOGICAL_TYPES:
        return _LOGICAL_TYPES[avro.logical], Form.NUMBERS, 4 if avro.kind == "int" else 8
    if avro.kind != "fixed":
        return _PRIMITIVE_TYPES[avro.kind]
    if avro.logical == "uuid":
        return pa.string(), Form.FIXED, avro.size
    if avro.logical == "duration":
        return _DURATION_TYPE, Form.FIXED, avro.size
    if not avro.size:  # which Arrow has no type for that others can read
        return _PRIMITIVE_TYPES["bytes"]
    return pa.binary(avro.size), Form.FIXED, avro.size


def common_number(branches: list[AvroType]) -> str | None:
    """Return the type that holds the numbers of all branches without loss, if there is one."""
    kinds = {each.kind for each in branches}
    if any(each.logical for each in branches):
        return None
    if kinds <= {"int", "long"}:
        return "long"
    return "double" if kinds <= {"int", "float", "double"} else None
