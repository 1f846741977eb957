"""Streams, which cannot be read yet: the error says so, and what to use instead."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyspark.errors import StreamingQueryException

from tests.support.batches import Stored, batch_v2
from tests.support.log_files import write_partition
from tests.support.spark_session import NEEDS_SPARK

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = NEEDS_SPARK

NO_STREAMS = (
    'NotImplementedError: format("pylog") does not read streams yet; use spark.read in place of '
    "spark.readStream. To read only what is new since the last read, set option startingOffsets to "
    'the highest offset of each partition that it gave, plus 1, as in {"orders":{"0":43}}'
)


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    write_partition(tmp_path / "logs", {0: [batch_v2([Stored(0, 0, None, b"v")])]})
    return tmp_path / "logs"


def test_a_stream_of_reads(spark: SparkSession, logs: Path) -> None:
    stream = spark.readStream.format("pylog").load(str(logs))
    query = stream.writeStream.format("memory").queryName("q").start()
    with pytest.raises(StreamingQueryException) as caught:
        query.awaitTermination(60)
    told = str(caught.value)
    assert NO_STREAMS in told.splitlines()
    assert "UnboundLocalError" not in told
    assert "During handling" not in told
