"""What JSON is read as: an Arrow type as a tree of nodes, and the table that the kernel follows.

A field whose metadata say so (`as_text`) takes any value, as the JSON text that it is.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pylog.kernels import json_values as kernel

STRINGS = {kernel.STRING, kernel.TEXT}
"""Kinds of nodes whose values are strings."""
_TEXT = {b"pylog:json": b"text"}
_UNITS = {"s": 0, "ms": 3, "us": 6, "ns": 9}
_INTEGERS = {
    pa.int8(): (-(1 << 7), 1 << 7),
    pa.int16(): (-(1 << 15), 1 << 15),
    pa.int32(): (-(1 << 31), 1 << 31),
    pa.int64(): (-(1 << 63), 1 << 63),
    pa.uint8(): (0, 1 << 8),
    pa.uint16(): (0, 1 << 16),
    pa.uint32(): (0, 1 << 32),
    pa.uint64(): (0, 1 << 64),
}
_FLOATS = {pa.float16(): 65504.0, pa.float32(): 3.4028234663852886e38, pa.float64(): 1.797e308}
"""The largest that the kernel may take for each; all below is exact."""
_ESCAPED = re.compile(r'["\\\x00-\x1f]')
_BY_READER = (
    *(pa.types.is_binary, pa.types.is_fixed_size_binary, pa.types.is_time, pa.types.is_null),
    pa.types.is_decimal256,
)


@dataclass(frozen=True, slots=True)
class JsonNode:
    """One place in a type.

    Attributes
    ----------
    name
        Of a field of a struct; else empty.
    kind
        One of the kernel's.
    type
        Of the column.
    least, most
        Of an integer: what it lies between, the last one included. Of a decimal: scale and
        precision. Of a timestamp: digits of its unit, and whether it has a zone.
    children
        Fields of a struct, the element of a list, key and value of a map.
    """

    name: str
    kind: int
    type: pa.DataType
    least: int = 0
    most: int = 0
    is_nullable: bool = True
    children: tuple[JsonNode, ...] = ()


def as_text(name: str, *, nullable: bool = True) -> pa.Field:
    """Return a field for values of any type, each kept as its JSON text."""
    return pa.field(name, pa.string(), nullable=nullable, metadata=_TEXT)


def is_text(field: pa.Field) -> bool:
    """Return whether a field is for JSON texts."""
    return (field.metadata or {}).get(b"pylog:json") == b"text"


def node_of(field: pa.Field, depth: int = 0) -> JsonNode:
    """Return the node of a field.

    Raises
    ------
    ValueError
        Nothing in JSON is read as this type.
    """
    kind = field.type
    if depth > kernel.MOST_DEPTH:
        raise ValueError(f"a type for JSON is nested deeper than {kernel.MOST_DEPTH}: {field.name}")
    if is_text(field):
        return JsonNode(field.name, kernel.TEXT, pa.string(), is_nullable=field.nullable)
    if pa.types.is_struct(kind):
        return _struct(field, depth)
    if pa.types.is_list(kind):
        child = node_of(kind.value_field, depth + 1)
        inner = pa.field(kind.value_field.name, child.type, child.is_nullable)
        return _node(field, kernel.LIST, pa.list_(inner), (child,))
    if pa.types.is_map(kind):
        if not pa.types.is_string(kind.key_type):
            raise ValueError(f"{field.name!r} is {kind}: names in JSON are strings, expected them")
        key = JsonNode("key", kernel.STRING, pa.string(), is_nullable=False)
        value = node_of(kind.item_field, depth + 1)
        inner = pa.field("value", value.type, value.is_nullable)
        return _node(field, kernel.MAP, pa.map_(pa.string(), inner), (key, value))
    return _leaf(field)


def _node(
    field: pa.Field, kind: int, type_: pa.DataType, children: tuple[JsonNode, ...]
) -> JsonNode:
    return JsonNode(field.name, kind, type_, is_nullable=field.nullable, children=children)


def _struct(field: pa.Field, depth: int) -> JsonNode:
    children = tuple(node_of(each, depth + 1) for each in field.type)
    names = [each.name for each in children]
    if doubled := {name for name in names if names.count(name) > 1}:
        raise ValueError(f"{field.name!r} has two fields {min(doubled)!r}, expected one")
    inner = [pa.field(each.name, each.type, each.is_nullable) for each in children]
    return _node(field, kernel.STRUCT, pa.struct(inner), children)


def _leaf(field: pa.Field) -> JsonNode:
    kind = field.type
    least = most = 0
    if kind in _INTEGERS:
        what = kernel.INTEGER
        least, end = _INTEGERS[kind]
        most = end - 1
    elif kind in _FLOATS:
        what = kernel.FLOAT
        most = int(np.float64(_FLOATS[kind]).view(np.int64))
    elif pa.types.is_string(kind):
        what = kernel.STRING
    elif pa.types.is_boolean(kind):
        what = kernel.BOOLEAN
    elif pa.types.is_decimal128(kind):
        what, least, most = kernel.DECIMAL, kind.scale, kind.precision
    elif pa.types.is_timestamp(kind):
        what, least, most = kernel.TIMESTAMP, _UNITS[kind.unit], int(kind.tz is not None)
    elif pa.types.is_date32(kind):
        what = kernel.DATE
    elif any(accepts(kind) for accepts in _BY_READER):
        what = kernel.OTHER
    else:
        raise ValueError(
            f"{field.name!r} is {kind}, which no JSON is read as: expected struct, list, map, "
            "string, integer, float, decimal, boolean, timestamp, date, time or binary"
        )
    return JsonNode(field.name, what, kind, least, most, field.nullable)


@dataclass(frozen=True, slots=True)
class JsonProgram:
    """What the kernel is told of a type.

    Attributes
    ----------
    nodes
        Parents before their children, which stand side by side.
    table
        A row for each, without the places that depend on how many slots there are.
    strings
        Which of the nodes are strings.
    names, tables
        Names of fields, eight bytes a word; tables of fields by the hash of their names. A name
        that JSON writes with escapes is in neither.
    next_fields
        Of each node, which field comes first in it, and which one after it; -1 if none does. A
        guess that the kernel improves.
    domains
        How many there are.
    """

    nodes: tuple[JsonNode, ...]
    table: npt.NDArray[np.int64]
    names: npt.NDArray[np.int64]
    tables: npt.NDArray[np.int64]
    next_fields: npt.NDArray[np.int64]
    strings: tuple[int, ...]
    domains: int


def program_of(root: JsonNode) -> JsonProgram:
    """Return the table of a type's nodes."""
    nodes = [root]
    table = [[0] * kernel.COLUMNS]
    names: list[int] = []
    tables: list[int] = []
    next_fields = [-1, -1]
    domains = 1
    for place, node in enumerate(nodes):  # which grows
        row = table[place]
        row[kernel.KIND] = node.kind
        row[kernel.LEAST], row[kernel.MOST] = node.least, min(node.most, (1 << 63) - 1)
        is_lacking = any(not each.is_nullable for each in node.children)
        row[kernel.IS_REQUIRED] = 2 * is_lacking + (not node.is_nullable)
        row[kernel.FIRST_CHILD], row[kernel.CHILDREN] = len(nodes), len(node.children)
        domain = row[kernel.DOMAIN]
        if node.kind in {kernel.LIST, kernel.MAP}:
            domain, domains = domains, domains + 1
            row[kernel.CHILD_DOMAIN] = domain
        for child in node.children:
            text = child.name.encode()
            entry = [0] * kernel.COLUMNS
            entry[kernel.DOMAIN] = domain
            if node.kind == kernel.STRUCT and not _ESCAPED.search(child.name):
                quoted = b'"%b":' % text
                entry[kernel.NAME], entry[kernel.NAME_BYTES] = len(names), len(quoted)
                entry[kernel.NAME_HASH] = _hash(text)
                names += np.frombuffer(quoted + bytes(-len(quoted) % 8), "<i8").tolist()
            table.append(entry)
        if node.kind == kernel.STRUCT:
            _add_table(row, tables, table[len(nodes) :], len(nodes))
        first = len(nodes) if node.kind == kernel.STRUCT and node.children else -1
        next_fields[2 * place] = first
        nodes += node.children
        for number in range(len(nodes) - len(node.children), len(nodes)):
            # After the last one the first, for names in another order.
            after = number + 1 if number + 1 < len(nodes) else first
            next_fields += [-1, after if first >= 0 else -1]
    return JsonProgram(
        tuple(nodes),
        np.array(table, dtype=np.int64),
        np.array([*names, 0], dtype=np.int64),
        np.array([*tables, 0], dtype=np.int64),
        np.array(next_fields, dtype=np.int64),
        tuple(place for place, node in enumerate(nodes) if node.kind in STRINGS),
        domains,
    )


def _hash(text: bytes) -> int:
    """Return the kernel's hash of a name."""
    value = len(text)
    for byte in text:
        value = (value * 31 + byte) & 0xFFFFFFFF
    return value


def _add_table(row: list[int], tables: list[int], fields: list[list[int]], first: int) -> None:
    """Add a table by which a struct's fields are found: at least half of it is free."""
    size = 1 << (2 * len(fields)).bit_length()
    places = [-1] * size
    for number, field in enumerate(fields, first):
        if field[kernel.NAME_BYTES] == 0:
            continue
        at = field[kernel.NAME_HASH] & (size - 1)
        while places[at] >= 0:
            at = (at + 1) & (size - 1)
        places[at] = number
    row[kernel.TABLE], row[kernel.TABLE_MASK] = len(tables), size - 1
    tables += places


def powers_of_ten() -> npt.NDArray[np.int64]:
    """Return the upper 128 bits of each power of five that a float's exponent may have.

    Source: as the kernel's `_float_bits`; those below zero are rounded up.
    """
    words = []
    for power in range(kernel.LEAST_POWER, kernel.MOST_POWER + 1):
        if power >= 0:
            value = 5**power
        else:
            divisor = 5**-power
            bits = (divisor - 1).bit_length()
            value = (1 << (bits + 127 if power >= -27 else 2 * bits + 128)) // divisor + 1
        value = value << 128 >> value.bit_length()
        words += [value >> 64, value & 0xFFFFFFFFFFFFFFFF]
    return np.array(words, dtype=np.uint64).view(np.int64)
