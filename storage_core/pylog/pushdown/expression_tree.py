"""The parts of a pyarrow expression, for which pyarrow itself has no way to ask.

It does write them down: pickled, an expression is an Arrow file whose schema has the structure
as metadata, part by part, and whose only row has the literals and the options of functions, each
as a column of its own.

Source: ``arrow::compute::Serialize`` in ``expression.cc`` (Arrow 18 to 26).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow.compute as pc


_HEAD = "-- schema metadata --\n"
_PART = re.compile(r"(\w+): '([^'\n]*)'")


class Column(NamedTuple):
    """A column of the rows; of a struct's member, the column that the struct is."""

    name: str
    is_whole: bool


class Literal(NamedTuple):
    """A constant, as an array of one value."""

    value: pa.Array


class Call(NamedTuple):
    """A function of pyarrow.compute, what it is called with, and its options as a struct."""

    function: str
    arguments: tuple[Node, ...]
    options: pa.StructScalar | None


Node = Column | Literal | Call


def expression_tree(expression: pc.Expression) -> Node | None:
    """Return an expression's parts; None if it is written in a way that is not known."""
    _, [written] = expression.__reduce__()
    row = pa.ipc.open_file(written).get_batch(0)
    # As a mapping it would have one part of each kind.
    _, head, metadata = row.schema.to_string(truncate_metadata=False).partition(_HEAD)
    parts = [_PART.fullmatch(line) for line in metadata.splitlines()]
    if not head or None in parts:
        return None
    try:
        [tree] = _nodes(iter([(part[1], part[2]) for part in parts if part is not None]), row)
    except (LookupError, ValueError):
        return None
    return tree


def _nodes(parts: Iterator[tuple[str, str]], row: pa.RecordBatch) -> list[Node]:
    """Return what is not part of another node; without recursion, as trees may be deep."""
    open_calls: list[tuple[str, list[Node], list[pa.StructScalar]]] = [("", [], [])]
    for kind, text in parts:
        _, nodes, options = open_calls[-1]
        if kind == "call":
            open_calls.append((text, [], []))
        elif kind == "field_ref":
            nodes.append(Column(text, is_whole=True))
        elif kind == "nested_field_ref":
            path = [next(parts, ("", "")) for _ in range(int(text))]
            if {step for step, _ in path} - {"field_ref", "field_index"}:
                raise LookupError(kind)
            nodes.append(Column(path[0][1], is_whole=False))
        elif kind == "literal":
            nodes.append(Literal(row.column(int(text))))
        elif kind == "options":
            options.append(row.column(int(text))[0])
        elif kind == "end" and len(open_calls) > 1:
            function, nodes, options = open_calls.pop()
            made = Call(function, tuple(nodes), options[0] if options else None)
            open_calls[-1][1].append(made)
        else:
            raise LookupError(kind)
    if len(open_calls) != 1:
        raise LookupError("end")
    return open_calls[0][1]


def columns_in(tree: Node) -> set[str]:
    """Return the names of the columns that an expression is about."""
    found: set[str] = set()
    rest = [tree]
    while rest:
        node = rest.pop()
        if isinstance(node, Column):
            found.add(node.name)
        elif isinstance(node, Call):
            rest += node.arguments
    return found
