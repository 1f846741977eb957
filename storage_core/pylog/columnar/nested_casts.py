"""Casts of nested columns.

Arrow's own cast of structs in lists gives their columns of nulls the wrong length, so that what it
makes is no valid array (Arrow 26.0.1). Here only leaves are cast.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from pylog.columnar.arrow_buffers import present_rows
from pylog.lazy_modules import LazyModule

if TYPE_CHECKING:
    import pyarrow.compute as pc
else:
    pc = LazyModule("pyarrow.compute")  # an eighth of the start-up of what casts nothing

_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def cast_leaves(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return a column as another type with the same nesting; times may lose what is finer.

    A timestamp becomes the one before it, also before 1970; a duration becomes the shorter one.

    Parameters
    ----------
    column
        Any column.
    kind
        A type whose structs have as many fields, in the same order.

    Raises
    ------
    pyarrow.ArrowInvalid
        A value does not fit.

    Examples
    --------
    >>> import pyarrow as pa
    >>> column = pa.array([{"a": None}], pa.struct([("a", pa.null())]))
    >>> pylog.jobs.cast_leaves(column, pa.struct([("a", pa.string())])).type
    StructType(struct<a: string>)
    """
    given = column.type
    if given == kind:
        return column
    if pa.types.is_null(given):
        return pa.nulls(len(column), kind)
    if pa.types.is_struct(given) and pa.types.is_struct(kind):
        fields = list(kind)
        children = [cast_leaves(column.field(at), each.type) for at, each in enumerate(fields)]
        mask = column.is_null() if column.null_count else None
        return pa.StructArray.from_arrays(children, fields=fields, mask=mask)
    if pa.types.is_map(given) and pa.types.is_map(kind):
        entries = [
            cast_leaves(column.keys, kind.key_type),
            cast_leaves(column.items, kind.item_type),
        ]
        fields = [kind.key_field, kind.item_field]
        return _of_entries(column, kind, pa.StructArray.from_arrays(entries, fields=fields))
    if pa.types.is_list(given) and pa.types.is_list(kind):
        return _of_entries(column, kind, cast_leaves(column.values, kind.value_type))
    if pa.types.is_timestamp(given) and pa.types.is_timestamp(kind):
        ratio = _PER_SECOND[given.unit] // _PER_SECOND[kind.unit]
        if ratio > 1:
            return _floor(column, ratio).view(kind)
    return pc.cast(column, options=pc.CastOptions(target_type=kind, allow_time_truncate=True))


def _of_entries(column: pa.Array, kind: pa.DataType, entries: pa.Array) -> pa.Array:
    """Return lists, or maps, that have other entries."""
    return pa.Array.from_buffers(
        kind,
        len(column),
        column.buffers()[:2],
        null_count=column.null_count,
        offset=column.offset,
        children=[entries],
    )


def _floor(column: pa.Array, ratio: int) -> pa.Array:
    """Return ticks in a coarser unit: Arrow's cast goes towards 1970, Java's to the one before."""
    ticks = np.frombuffer(column.buffers()[1] or b"", np.int64)[column.offset :][: len(column)]
    return pa.array(ticks // ratio, mask=~present_rows(column))
