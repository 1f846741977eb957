"""What ``table(…).count()`` asks of a task is how many records it has; no Spark is running."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING
from unittest import mock

import pytest
from pyspark.sql.datasource import CaseInsensitiveDict, InputPartition

from pylog.columnar.decode import RecordDecoder
from pylog.errors import LogDirectoryError
from pyspark_pylog import DefaultSource
from pyspark_pylog.batch_reader import COUNT, RecordCountReader, TaskPartition
from pyspark_pylog.options import RECORD_COUNTS
from tests.support.batches import Stored, batch_v2, plain_records
from tests.support.golden import Holds, Isolation, golden_partitions, read_expected
from tests.support.log_files import segment_path, write_partition

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.golden import GoldenRoot

PARTITIONS = golden_partitions(Holds.EXACTLY, Holds.MORE_AT_THE_START)


def counted(path: object, **options: str) -> int:
    """Return the sum of the rows that Spark's tasks give, each step in a process of its own."""
    source = DefaultSource({"path": str(path), "recordcounts": "true", **options})
    schema = source.schema()
    assert schema.simpleString() == "struct<records:bigint>"
    reader = pickle.loads(pickle.dumps(source)).reader(schema)  # noqa: S301 - our own
    shipped, partitions = pickle.dumps(reader), pickle.dumps(reader.partitions())
    total = 0
    for each in pickle.loads(partitions):  # noqa: S301
        [batch] = pickle.loads(shipped).read(each)  # noqa: S301
        total += batch.to_pylist()[0]["records"]
    assert list(reader.read(InputPartition(None))) == []
    return total


@pytest.mark.parametrize("partition_id", PARTITIONS)
@pytest.mark.parametrize("isolation", ["uncommitted", "committed"])
def test_a_count_is_that_of_kafkas_consumer(
    partition_id: str, isolation: Isolation, golden_root: GoldenRoot
) -> None:
    partition = golden_root.partition(partition_id)
    path = partition.expected_path(isolation)
    if path is None:
        pytest.skip("no consumer read it so")
    options = {"subscribe": partition.topic, "isolationLevel": f"read_{isolation}"}
    assert counted(partition.directory, **options) == len(read_expected(path))


def test_ranges_that_cut_batches_and_begin_in_gaps_are_counted(tmp_path: Path) -> None:
    # Compaction has left offsets 0 to 4, 20 to 24 and, of 30 to 34, the first and the last.
    sparse = [record for record in plain_records(30, 5) if record.offset in (30, 34)]
    batches = [batch_v2(plain_records(0, 5)), batch_v2(plain_records(20, 5)), batch_v2(sparse)]
    write_partition(tmp_path, {0: batches}, name="orders-0")
    for start, end, expected in ((0, 35, 12), (3, 35, 9), (7, 22, 2), (5, 20, 0), (31, 35, 1)):
        given = {
            "startingOffsets": f'{{"orders":{{"0":{start}}}}}',
            "endingOffsets": f'{{"orders":{{"0":{end}}}}}',
        }
        assert counted(tmp_path, **given) == expected
        assert counted(tmp_path, maxRecordsPerPartition="2", **given) == expected


def test_no_record_is_decoded(tmp_path: Path) -> None:
    for number in range(3):
        write_partition(tmp_path, {0: [batch_v2(plain_records(0, 9))]}, name=f"orders-{number}")
    with mock.patch.object(RecordDecoder, "decode", side_effect=AssertionError):
        assert counted(tmp_path) == 27
        assert counted(tmp_path, packPartitions="true") == 27


def test_damage_is_left_out_where_the_mode_says_so(tmp_path: Path) -> None:
    batches = [batch_v2(plain_records(at, 3)) for at in (0, 3, 6)]
    write_partition(tmp_path, {0: batches}, name="orders-0")
    path = segment_path(tmp_path / "orders-0", 0)
    data = bytearray(path.read_bytes())
    data[2 * len(data) // 3 - 1] ^= 1
    path.write_bytes(data)
    assert counted(tmp_path, mode="DROPMALFORMED") == 6
    assert counted(tmp_path, mode="PERMISSIVE") == 7  # with the row that stands for the damage
    assert counted(tmp_path) == 9  # headers only: as `pylog.results.Scan.count`


def test_options_are_looked_at_first(tmp_path: Path) -> None:
    with pytest.raises(LogDirectoryError, match="no Kafka log here"):
        counted(tmp_path)
    write_partition(tmp_path, {0: [batch_v2(plain_records(0, 1))]}, name="orders-0")
    with pytest.raises(ValueError, match="which is not a column"):
        counted(tmp_path, columns="ofset")


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
