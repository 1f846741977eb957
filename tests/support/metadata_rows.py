"""Rows of a golden partition's metadata table, and records of the cluster's metadata, as values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pylog
from pylog.internal_topics.cluster_metadata import read_metadata_record
from pylog.reading.internal_logs import metadata_values
from pylog.reading.log_directory import open_directory
from tests.support.metadata_log import METADATA

if TYPE_CHECKING:
    from pathlib import Path

    from pylog.tables import TableName
    from tests.support.golden import GoldenPartition

Row = dict[str, Any]


def table_of(partition: GoldenPartition, name: TableName, **options: Any) -> list[Row]:  # noqa: ANN401 - of read_table
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


def records(directory: Path) -> list[dict[str, Any]]:
    """Return the metadata records of a log directory, by name and fields."""
    view = open_directory(directory / METADATA)[("__cluster_metadata", 0)]
    found = []
    for value in metadata_values(view):
        record = read_metadata_record(value)
        found.append({"name": record.message.name, "fields": record.fields})
    return found


def fields_of(directory: Path, name: str) -> list[dict[str, Any]]:
    """Return the fields of its metadata records of one name."""
    return [each["fields"] for each in records(directory) if each["name"] == name]
