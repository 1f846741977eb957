"""Records as tests write them to topics, and the context they are written in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

import pylog

if TYPE_CHECKING:
    from pathlib import Path


def rows(directory: Path, *columns: str) -> list[tuple[Any, ...]]:
    scan = pylog.scan(directory, columns=list(columns), timestamp_unit="ms")
    found = scan.to_table()
    if "timestamp" in columns:
        place = found.schema.get_field_index("timestamp")
        found = found.set_column(place, "timestamp", found["timestamp"].cast(pa.int64()))
    return [tuple(row.values()) for row in found.to_pylist()]


def table(count: int = 6) -> pa.Table:
    return pa.table(
        {
            "key": [b"k%d" % number for number in range(count)],
            "value": [b"v%d" % number for number in range(count)],
            "ignored": [[number] for number in range(count)],
        }
    )
