"""What Protobuf messages are read as: a tree of nodes, and the table that the kernel follows.

==========================  ======================================================================
field                       column
==========================  ======================================================================
message, oneof              struct; members of a oneof side by side, all but one of them null
repeated, map               list, map: empty where there is nothing
enum                        string: the name, or digits of a number that has none
``Timestamp``               timestamp in UTC, of nanoseconds: from 1677 to 2262
``Duration``                duration of nanoseconds
wrappers                    the value, or null
``Struct`` and its parts    JSON text
``confluent.type.Decimal``  decimal of the precision and the scale that the field's options say,
                            else text
a message within itself     its bytes
==========================  ======================================================================

What may be absent, and has no default in the schema, is null then; of proto3 these are messages,
members of a oneof and what is ``optional``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pylog.kernels import protobuf_values as kernel
from pylog.typed import protobuf_well_known as well_known
from pylog.typed.protobuf_schema import SCALARS, ProtoField

if TYPE_CHECKING:
    from pylog.typed.protobuf_schema import ProtoEnum, ProtoMessage, ProtoSchema

_KINDS = {
    "double": (kernel.FIXED64, pa.float64()),
    "float": (kernel.FIXED32, pa.float32()),
    "int32": (kernel.INT32, pa.int32()),
    "int64": (kernel.INT64, pa.int64()),
    "uint32": (kernel.UINT32, pa.uint32()),
    "uint64": (kernel.INT64, pa.uint64()),
    "sint32": (kernel.SINT32, pa.int32()),
    "sint64": (kernel.SINT64, pa.int64()),
    "fixed32": (kernel.FIXED32, pa.uint32()),
    "fixed64": (kernel.FIXED64, pa.uint64()),
    "sfixed32": (kernel.SFIXED32, pa.int32()),
    "sfixed64": (kernel.FIXED64, pa.int64()),
    "bool": (kernel.BOOL, pa.bool_()),
    "string": (kernel.STRING, pa.string()),
    "bytes": (kernel.BYTES, pa.binary()),
}
_WIRES = {kernel.FIXED64: 1, kernel.FIXED32: 5, kernel.SFIXED32: 5}
IN_BYTES = {kernel.STRING, kernel.BYTES}
"""Kinds of nodes whose values are bytes."""
_MOST_NODES = 20_000
_MOST_DEPTH = 40

PLAIN, MAP, WRAPPER, TIMESTAMP, DURATION, JSON, DECIMAL, RAW = range(8)
"""What a column is made of, beside what the kernel writes."""


@dataclass(frozen=True, slots=True)
class ProtoNode:
    """One place in a type.

    Attributes
    ----------
    name, number
        Of the field.
    kind
        One of the kernel's.
    type
        Of the column.
    shape
        `PLAIN`, or what else the column is made of.
    default
        What it is where it is absent; None for null, and for what is always there.
    is_present
        Whether it is never null within a value: it has a default, is a list or an element.
    is_implicit
        Whether a default is not written: it has no presence.
    oneof
        The name of its oneof.
    enum
        Of numbers with names.
    message
        The name, of what becomes JSON.
    """

    name: str
    number: int
    kind: int
    type: pa.DataType
    shape: int = PLAIN
    default: Any = None
    is_present: bool = False
    is_required: bool = False
    is_implicit: bool = False
    oneof: str = ""
    enum: ProtoEnum | None = None
    message: str = ""
    children: tuple[ProtoNode, ...] = ()

    @property
    def wire(self) -> int:
        """The wire type of its values."""
        if self.kind == kernel.LIST:
            return self.children[0].wire
        is_delimited = self.kind <= kernel.BYTES
        return 2 if is_delimited else _WIRES.get(self.kind, 0)


def node_of_message(schema: ProtoSchema, name: str) -> ProtoNode:
    """Return the node of a message.

    Raises
    ------
    ValueError
        There is no such message, or it is too wide for columns.
    """
    if name not in schema.messages:
        known = ", ".join(sorted(schema.messages)) or "none"
        raise ValueError(f"the schema has no message {name!r}; it has {known}")
    return _Nodes(schema).message(schema.messages[name])


class _Nodes:
    def __init__(self, schema: ProtoSchema) -> None:
        self._schema = schema
        self._within: list[str] = []
        self._count = 0

    def message(self, message: ProtoMessage) -> ProtoNode:
        """Return the node of a message that is always there."""
        self._within.append(message.name)
        children = tuple(self._field(each) for each in message.fields)
        self._within.pop()
        kind = pa.struct([pa.field(each.name, each.type) for each in children])
        return ProtoNode("", 0, kernel.STRUCT, kind, is_present=True, children=children)

    def _field(self, field: ProtoField) -> ProtoNode:
        self._count += 1
        if self._count > _MOST_NODES:
            raise ValueError(f"the schema's message has more than {_MOST_NODES} fields within it")
        value = self._value(field.type, field)
        if field.is_map:
            return self._map(field, value)
        value = replace(value, name=field.name, number=field.number)
        if field.is_repeated:
            element = replace(value, is_present=True)
            kind = pa.list_(pa.field("element", value.type))
            return ProtoNode(
                field.name, field.number, kernel.LIST, kind, is_present=True, children=(element,)
            )
        default = None
        if value.kind != kernel.STRUCT and value.shape == PLAIN:
            default = _default(field, value)
        return replace(
            value,
            default=default,
            is_present=default is not None,
            is_required=field.presence == "required",
            is_implicit=field.presence == "implicit",
            oneof=field.oneof,
        )

    def _map(self, field: ProtoField, value: ProtoNode) -> ProtoNode:
        key_kind, key_type = _KINDS[field.key]
        key = ProtoNode("key", 1, key_kind, key_type, default=_zero(key_type), is_present=True)
        default = None
        if value.shape == PLAIN and value.kind != kernel.STRUCT:
            default = _default(ProtoField("", 2, field.type, presence="implicit"), value)
        value = replace(value, name="value", number=2, default=default, is_present=True)
        fields = [pa.field("key", key.type, nullable=False), pa.field("value", value.type)]
        entry = ProtoNode(
            *("entry", field.number, kernel.STRUCT, pa.struct(fields)),
            is_present=True,
            children=(key, value),
        )
        kind = pa.map_(key.type, value.type)
        return ProtoNode(
            *(field.name, field.number, kernel.LIST, kind, MAP), is_present=True, children=(entry,)
        )

    def _value(self, kind: str, field: ProtoField) -> ProtoNode:
        """Return the node of a value, whose name and number are still to come."""
        if kind in SCALARS:
            return ProtoNode("", 0, *_KINDS[kind])
        name = kind.removeprefix(".")
        if name in self._schema.enums:
            enum = self._schema.enums[name]
            return ProtoNode("", 0, kernel.ENUM, pa.string(), enum=enum)
        if name in well_known.WRAPPERS:
            inner = self._schema.messages[name].fields[0]
            value = replace(self._field(inner), default=_zero(_KINDS[inner.type][1]))
            value = replace(value, is_present=True)
            return ProtoNode("", 0, kernel.STRUCT, value.type, WRAPPER, children=(value,))
        if name in {well_known.TIMESTAMP, well_known.DURATION}:
            is_time = name == well_known.TIMESTAMP
            of = pa.timestamp("ns", "UTC") if is_time else pa.duration("ns")
            parts = (
                ProtoNode("seconds", 1, kernel.INT64, pa.int64(), default=0, is_present=True),
                ProtoNode("nanos", 2, kernel.INT32, pa.int32(), default=0, is_present=True),
            )
            shape = TIMESTAMP if is_time else DURATION
            return ProtoNode("", 0, kernel.STRUCT, of, shape, children=parts)
        if name in well_known.JSON_VALUES:
            return ProtoNode("", 0, kernel.BYTES, pa.string(), JSON, message=name)
        if name == well_known.DECIMAL:
            of = pa.decimal128(*field.decimal) if field.decimal else pa.string()
            return ProtoNode("", 0, kernel.BYTES, of, DECIMAL)
        if name in self._within or len(self._within) > _MOST_DEPTH:
            return ProtoNode("", 0, kernel.BYTES, pa.binary(), RAW)
        return replace(self.message(self._schema.messages[name]), is_present=False)


def _zero(kind: pa.DataType) -> Any:  # noqa: ANN401 - as the type says
    """Return the default of a type that has none in the schema."""
    if pa.types.is_string(kind):
        return ""
    if pa.types.is_binary(kind):
        return b""
    return False if pa.types.is_boolean(kind) else 0.0 if pa.types.is_floating(kind) else 0


def _default(field: ProtoField, value: ProtoNode) -> Any:  # noqa: ANN401 - as the type says
    """Return what a field is where it is absent; None for null."""
    text = field.default
    if value.enum is not None:
        if text is not None:
            return text
        first = value.enum.first
        is_implicit = field.presence == "implicit"
        return value.enum.names.get(first, str(first)) if is_implicit else None
    zero = _zero(value.type)
    if text is None:
        return zero if field.presence == "implicit" else None
    try:
        if isinstance(zero, bool):
            return text == "true"
        if isinstance(zero, int):
            return int(text, 8 if re.fullmatch("-?0[0-7]+", text) else 0)
        if isinstance(zero, float):
            return float(text)
    except ValueError:
        raise ValueError(f"the schema's field {field.name!r} has the default {text!r}") from None
    return text.encode("latin-1", "replace") if isinstance(zero, bytes) else text


@dataclass(frozen=True, slots=True)
class ProtobufProgram:
    """What the kernel is told of a type; see `pylog.typed.json_types.JsonProgram`."""

    nodes: tuple[ProtoNode, ...]
    table: npt.NDArray[np.int64]
    tables: npt.NDArray[np.int64]
    next_fields: npt.NDArray[np.int64]
    strings: tuple[int, ...]
    domains: int
    oneofs: tuple[tuple[int, ...], ...]
    """The members of each oneof."""


def program_of(root: ProtoNode) -> ProtobufProgram:
    """Return the table of a type's nodes."""
    nodes = [root]
    table = [[0] * kernel.COLUMNS]
    tables: list[int] = []
    next_fields = [-1, -1]
    oneofs: list[tuple[int, ...]] = []
    domains = 1
    for place, node in enumerate(nodes):  # which grows
        row = table[place]
        first = len(nodes)
        domain = row[kernel.DOMAIN]
        if node.kind == kernel.LIST:
            domain, domains = domains, domains + 1
        _fill(row, node, first, domain)
        table += [
            [domain if column == kernel.DOMAIN else 0 for column in range(kernel.COLUMNS)]
            for _ in node.children
        ]
        nodes += node.children
        is_struct = node.kind == kernel.STRUCT
        if is_struct:
            _add_table(row, tables, node.children, first)
            groups: dict[str, list[int]] = {}
            for number, child in enumerate(node.children, first):
                if child.oneof:
                    groups.setdefault(child.oneof, []).append(number)
            oneofs += map(tuple, groups.values())
        if is_struct and node.children:
            next_fields[2 * place] = first
        for number in range(first, len(nodes)):
            after = number + 1 if number + 1 < len(nodes) else first
            next_fields += [-1, after if is_struct else -1]
    return ProtobufProgram(
        tuple(nodes),
        np.array(table, dtype=np.int64),
        np.array([*tables, 0], dtype=np.int64),
        np.array(next_fields, dtype=np.int64),
        tuple(place for place, node in enumerate(nodes) if node.kind in IN_BYTES),
        domains,
        tuple(oneofs),
    )


def _fill(row: list[int], node: ProtoNode, first: int, domain: int) -> None:
    row[kernel.KIND], row[kernel.WIRE] = node.kind, node.wire
    row[kernel.FIRST_CHILD], row[kernel.CHILDREN] = first, len(node.children)
    row[kernel.CHILD_DOMAIN], row[kernel.NUMBER] = domain, node.number
    row[kernel.ONEOF] = -1
    row[kernel.LEAST], row[kernel.MOST] = _bounds(node.enum)
    lacking = any(each.is_required for each in node.children)
    row[kernel.FLAGS] = (
        kernel.IS_REQUIRED * node.is_required
        | kernel.HAS_REQUIRED * lacking
        | kernel.IS_SINGLE * (node.shape in {JSON, DECIMAL, RAW})
        | kernel.IS_MAP * (node.shape == MAP)
    )


def _bounds(enum: ProtoEnum | None) -> tuple[int, int]:
    """Return the numbers that the kernel takes: all of an open enum, of a closed one a run."""
    if enum is None or not enum.is_closed:
        return -(1 << 31), (1 << 31) - 1
    most = enum.first
    while most + 1 in enum.names:
        most += 1
    return enum.first, most


def _add_table(
    row: list[int], tables: list[int], fields: tuple[ProtoNode, ...], first: int
) -> None:
    """Add a table by which a struct's fields are found: at least half of it is free."""
    size = 1 << (2 * len(fields)).bit_length()
    places = [-1] * size
    for number, field in enumerate(fields, first):
        at = field.number & (size - 1)
        while places[at] >= 0:
            at = (at + 1) & (size - 1)
        places[at] = number
    row[kernel.TABLE], row[kernel.TABLE_MASK] = len(tables), size - 1
    tables += places
