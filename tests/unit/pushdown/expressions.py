"""Expressions of pyarrow that tests take apart."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

SCHEMA = pa.schema(
    [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.timestamp("us", "UTC")),
    ]
)
key, value, topic, partition, offset, timestamp = map(pc.field, SCHEMA.names)


def if_valid(field: pc.Expression, values: pa.Array) -> pc.Expression:
    """Return a membership as DuckDB 2 writes it."""
    return pc.if_else(field.is_valid(), field.isin(values), pa.scalar(None, pa.bool_()))
