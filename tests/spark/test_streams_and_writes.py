"""Writes, which there are not yet: the error says so, and what to use instead."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyspark.errors import StreamingQueryException

from tests.support.batches import Stored, batch_v2
from tests.support.log_files import write_partition
from tests.support.spark_session import NEEDS_SPARK, last_line

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = NEEDS_SPARK

NO_WRITES = (
    'NotImplementedError: format("pylog") does not write yet; from Python, pylog.write_topic('
    '"/data/logs", "orders", frame.toArrow(), partitions=3) writes a topic, on the command line '
    "pylog append does"
)


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    write_partition(tmp_path / "logs", {0: [batch_v2([Stored(0, 0, None, b"v")])]})
    return tmp_path / "logs"


@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_a_write(spark: SparkSession, logs: Path, mode: str) -> None:
    write = spark.range(3).write.format("pylog").mode(mode).option("topic", "orders")
    assert last_line(lambda: write.save(str(logs))) == NO_WRITES


def test_a_stream_of_writes(spark: SparkSession, logs: Path) -> None:
    stream = spark.readStream.format("rate").load().writeStream.format("pylog")
    query = stream.option("checkpointLocation", str(logs.parent / "checkpoint")).start(str(logs))
    with pytest.raises(StreamingQueryException) as caught:
        query.awaitTermination(60)
    assert NO_WRITES in str(caught.value).splitlines()
