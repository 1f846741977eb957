"""Rows of a golden partition's metadata table, as plain Python values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pylog

if TYPE_CHECKING:
    from tests.support.golden import GoldenPartition

Row = dict[str, Any]


def table_of(partition: GoldenPartition, name: str, **options: Any) -> list[Row]:  # noqa: ANN401 - of read_table
    """Return the rows of one partition's table, timestamps as ms."""
    assign = {partition.topic: [partition.partition]}
    table = pylog.read_table(partition.directory, name, assign=assign, **options)
    for place, field in enumerate(table.schema):
        if str(field.type).startswith("timestamp"):
            table = table.set_column(place, field.name, table[field.name].cast("int64"))
    rows: list[Row] = table.to_pylist()
    assert {(row["topic"], row["partition"]) for row in rows} <= {
        (partition.topic, partition.partition)
    }
    return rows
