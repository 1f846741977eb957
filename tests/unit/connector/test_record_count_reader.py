"""The reader behind ``table(…).count()``, called as Spark does; no Spark is running."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import CaseInsensitiveDict

from pyspark_pylog import DefaultSource
from pyspark_pylog.batch_reader import COUNT, RecordCountReader, TaskPartition
from pyspark_pylog.options import RECORD_COUNTS
from tests.support.batches import Stored, batch_v2
from tests.support.log_files import segment_path, write_partition

if TYPE_CHECKING:
    from pathlib import Path

RECORDS = 64


def counts(path: Path, **options: str) -> list[int]:
    """Return the count of each input partition."""
    given = {"path": str(path), RECORD_COUNTS: "true", **options}
    source = DefaultSource(CaseInsensitiveDict(given))
    reader = source.reader(source.schema())
    assert isinstance(reader, RecordCountReader)
    partitions = reader.partitions()
    assert all(isinstance(each, TaskPartition) for each in partitions)
    return [
        count
        for each in partitions
        for batch in reader.read(each)
        for count in batch.column(COUNT).to_pylist()
    ]


def test_a_count_splits_a_topic_partition_at_four_times_the_bytes(tmp_path: Path) -> None:
    batches = [
        batch_v2([Stored(offset, 1000, b"k", bytes(1000))], base_offset=offset)
        for offset in range(RECORDS)
    ]
    directory = write_partition(tmp_path, {0: batches}, name="orders-0")
    size = segment_path(directory, 0).stat().st_size
    assert counts(tmp_path, maxPartitionBytes=f"{size // 4}b") == [RECORDS]
    found = counts(tmp_path, maxPartitionBytes=f"{size // 8}b")
    assert (len(found), sum(found)) == (2, RECORDS)
    found = counts(tmp_path, maxPartitionBytes=f"{size // 4}b", minPartitions="8")
    assert (len(found), sum(found)) == (8, RECORDS)
