"""What `pylog.stats` returns: tables, and the same as a document or as a page."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pylog.inspect.statistics.statistics_page import statistics_page
from pylog.inspect.statistics.time_steps import TimeSteps
from pylog.text.names import json_name

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class LogStatistics:
    """Statistics of log directories.

    Attributes
    ----------
    tables
        By name: "topics", "partitions", "segments", "codecs", "batch_sizes", "times",
        "recompression", "hot_keys", "largest_records". The last three are empty where no records
        have been read. `pylog.inspect.statistics.statistics_tables` describes the columns.
    paths
        What was looked at.
    read
        How: "headers", "sample" or "all".
    now_ms
        The time that future timestamps were told by.
    sampled_bytes
        How much of ``.log`` files was read for the sample.
    problems
        What could not be read, a line for each.
    """

    def __init__(
        self,
        tables: Mapping[str, pa.Table],
        *,
        paths: Sequence[str],
        read: str,
        now_ms: int,
        sampled_bytes: int,
        problems: Sequence[str],
    ) -> None:
        self.tables = dict(tables)
        self.paths = list(paths)
        self.read = read
        self.now_ms = now_ms
        self.sampled_bytes = sampled_bytes
        self.problems = list(problems)

    def __repr__(self) -> str:
        topics, partitions = (self.tables[name].num_rows for name in ("topics", "partitions"))
        return f"LogStatistics({topics} topics, {partitions} partitions, read={self.read!r})"

    def time_steps(self, topic: str, most: int) -> TimeSteps | None:
        """Return what came over time to a topic, in at most so many steps; None without times."""
        rows = _with_milliseconds(self.tables["times"]).to_pylist()
        return TimeSteps.of([_plain(row) for row in rows if row["topic"] == topic], most)

    def document(self) -> dict[str, Any]:
        """Return all of it as plain values that JSON has.

        Tables are lists of objects, names in camel case. Timestamps are milliseconds. A key that is
        UTF-8 is a text, any other ``{"base64": ...}``.
        """
        tables = {
            json_name(name): [_plain(row) for row in _with_milliseconds(table).to_pylist()]
            for name, table in self.tables.items()
        }
        topics = tables["topics"]
        return {
            "paths": self.paths,
            "read": self.read,
            "now": self.now_ms,
            "sampledBytes": self.sampled_bytes,
            "summary": {
                "topics": len(topics),
                "partitions": len(tables["partitions"]),
                **{
                    name: sum(row[name] for row in topics)
                    for name in (
                        *("segments", "sizeInBytes", "batches", "records", "uncountedBatches"),
                        *("bytes", "controlBatches", "lateBatches", "futureBatches"),
                    )
                },
            },
            **tables,
            "problems": self.problems,
        }

    def html(self) -> str:
        """Return a page with charts that needs nothing beside it: neither files nor a network."""
        return statistics_page(self.document())


def _with_milliseconds(table: pa.Table) -> pa.Table:
    for place, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type):
            table = table.set_column(place, field.name, table.column(place).cast(pa.int64()))
    return table


def _plain(row: Mapping[str, Any]) -> dict[str, Any]:
    return {json_name(name): _plain_value(value) for name, value in row.items()}


def _plain_value(value: object) -> object:
    if isinstance(value, bytes):
        try:
            return value.decode("utf-8")
        except UnicodeDecodeError:
            return {"base64": base64.b64encode(value).decode()}
    return value
