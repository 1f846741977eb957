"""A job that reads: ``spark-submit count_records.py LOG_DIRECTORY TOPIC`` prints a line of JSON.

It counts the records of each partition in tasks of Spark, and says where pylog was imported from
and which executors took part. Values are JSON objects with an integer ``id``.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as sf

import pylog
import pyspark_pylog

if TYPE_CHECKING:
    from collections.abc import Iterator

_SCHEMA = (
    "partition long, records long, ids long, least long, greatest long, executor string, "
    "pylog string"
)


def count_task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Return one row for what a task read, with the executor's directory and pylog's file."""
    here = {"executor": str(Path.cwd()), "pylog": str(Path(pylog.__file__))}
    for batch in batches:
        table = pa.Table.from_batches([batch])
        rows = table.group_by("partition").aggregate(
            [([], "count_all"), ("id", "sum"), ("id", "min"), ("id", "max")]
        )
        for row in rows.to_pylist():
            counted = {
                "partition": row["partition"],
                "records": row["count_all"],
                "ids": row["id_sum"],
                "least": row["id_min"],
                "greatest": row["id_max"],
            }
            yield pa.RecordBatch.from_pylist([counted | here])


def main(directory: str, topic: str) -> None:
    """Count, and print what was found."""
    spark = pyspark_pylog.session()
    frame = spark.read.format("pylog").option("subscribe", topic).load(directory)
    ids = sf.get_json_object(frame["value"].cast("string"), "$.id").cast("long").alias("id")
    distinct = frame.select(ids).distinct().count()
    tasks = frame.select("partition", ids).mapInArrow(count_task, _SCHEMA).collect()
    by_partition: dict[int, int] = {}
    for row in tasks:
        by_partition[row.partition] = by_partition.get(row.partition, 0) + row.records
    summary = {
        "records": sum(by_partition.values()),
        "partitions": sorted(by_partition.items()),
        "distinct_ids": distinct,
        "least_id": min(row.least for row in tasks),
        "greatest_id": max(row.greatest for row in tasks),
        "sum_of_ids": sum(row.ids for row in tasks),
        "executors": sorted({row.executor for row in tasks}),
        "pylog_of_driver": str(pylog.__file__),
        "pylog_of_executors": sorted({row.pylog for row in tasks}),
    }
    spark.stop()
    sys.stdout.write(json.dumps(summary) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
