"""Reads a topic with Spark's own Kafka source, as a batch and as a stream.

``python -m tests.spark.kafka_source ADDRESS TOPIC ISOLATION FOLDER``, in a process of its own since
a session gets its jars when it starts. It prints a line of JSON for each way to read: the records
as lines of an expected file, with their partition.
"""

from __future__ import annotations

import base64
import json
import sys
from typing import TYPE_CHECKING, Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row

COLUMNS = ("partition", "offset", "timestampType", "key", "value", "headers")


def _encoded(content: bytes | None) -> str | None:
    return None if content is None else base64.b64encode(content).decode("ascii")


def _line(row: Row) -> dict[str, Any]:
    headers = [[each.key, _encoded(each.value)] for each in row.headers or ()]
    return {
        **row.asDict(),
        "key": _encoded(row.key),
        "value": _encoded(row.value),
        "headers": headers,
    }


def _print(way: str, frame: DataFrame) -> None:
    rows = frame.orderBy("partition", "offset").collect()
    sys.stdout.write(json.dumps({"way": way, "lines": list(map(_line, rows))}) + "\n")


def main(address: str, topic: str, isolation: str, folder: str) -> None:
    """Read a topic as a batch, and twice as a stream that takes what is available."""
    spark = SparkSession.builder.getOrCreate()
    options = {
        "kafka.bootstrap.servers": address,
        "kafka.isolation.level": isolation,
        "subscribe": topic,
        "startingOffsets": "earliest",
        "includeHeaders": "true",
    }
    columns = [*map(sf.col, COLUMNS), sf.unix_millis("timestamp").alias("timestamp")]
    _print("batch", spark.read.format("kafka").options(**options).load().select(*columns))
    stream = spark.readStream.format("kafka").options(**options, maxOffsetsPerTrigger="50")
    writer = stream.load().select(*columns).writeStream.format("parquet")
    writer = writer.option("checkpointLocation", f"{folder}/checkpoint").trigger(availableNow=True)
    for number in (1, 2):  # the second time nothing is new
        writer.start(f"{folder}/read").awaitTermination()
        _print(f"stream {number}", spark.read.parquet(f"{folder}/read"))


if __name__ == "__main__":
    main(*sys.argv[1:])
