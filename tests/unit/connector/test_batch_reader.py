"""Which topic-partitions share an input partition, and that what is read does not depend on it."""

from __future__ import annotations

import os
import pickle
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
from pyspark.sql.datasource import CaseInsensitiveDict

from pylog.errors import CorruptRecordError
from pyspark_pylog import DefaultSource
from pyspark_pylog.batch_reader import TaskPartition, pack
from pyspark_pylog.options import LoadOptions
from pyspark_pylog.table_reader import ViewPartition
from tests.support.batches import Built, batch_v2, plain_records
from tests.support.log_files import segment_path, write_partition

if TYPE_CHECKING:
    from pathlib import Path

MB = 1 << 20
RECORDS = 3


@dataclass(frozen=True)
class Range:
    """What packing looks at of a task."""

    size: int
    offsets: int = 10


def sizes_of_groups(items: list[Range], **given: str) -> list[int]:
    options = LoadOptions.parse({"path": "/logs", **given})
    groups = list(pack(items, options, lambda each: each.size, lambda each: each.offsets))
    assert [item for group in groups for item in group] == items
    return [len(group) for group in groups]


def test_up_to_200_are_left_alone_and_more_are_packed_into_at_least_200() -> None:
    assert sizes_of_groups([Range(1000)] * 200) == [1] * 200
    assert len(sizes_of_groups([Range(1000)] * 399)) == 399
    assert sizes_of_groups([Range(1000)] * 400) == [2] * 200
    assert sizes_of_groups([Range(1000)] * 1000) == [5] * 200
    assert sizes_of_groups([Range(1000)] * 1000, packPartitions="false") == [1] * 1000


def test_no_input_partition_exceeds_the_most_bytes_with_4_mb_for_each_opening() -> None:
    # 128 MB hold 32 openings, less what the bytes themselves take.
    assert max(sizes_of_groups([Range(0)] * 20_000)) == 32
    assert max(sizes_of_groups([Range(110_000)] * 20_000)) == 31
    assert max(sizes_of_groups([Range(60 * MB)] * 1000)) == 2
    assert max(sizes_of_groups([Range(61 * MB)] * 1000)) == 1
    assert max(sizes_of_groups([Range(0)] * 1000, maxPartitionBytes="8m")) == 2
    assert max(sizes_of_groups([Range(0)] * 1000, maxPartitionBytes="7m")) == 1
    # What is larger by itself shares with nobody.
    assert sizes_of_groups([Range(0), Range(200 * MB), Range(0)], packPartitions="true") == [
        1,
        1,
        1,
    ]


def test_packing_can_be_asked_for_where_there_are_few() -> None:
    assert sizes_of_groups([Range(0)] * 40, packPartitions="true") == [32, 8]
    assert sizes_of_groups([Range(0)] * 40, packPartitions="true", minPartitions="8") == [5] * 8
    assert sizes_of_groups([Range(0)], packPartitions="true") == [1]
    assert sizes_of_groups([], packPartitions="true") == []


@pytest.mark.parametrize("first", [0, 100 * MB])
def test_the_least_number_of_partitions_is_kept(first: int) -> None:
    items = [Range(first), *[Range(0)] * 300]
    assert len(sizes_of_groups(items)) >= 200
    assert len(sizes_of_groups(items, packPartitions="true", minPartitions="150")) >= 150
    assert len(sizes_of_groups(items, minPartitions="290")) >= 290
    assert len(sizes_of_groups(items, minPartitions="301")) == 301
    assert len(sizes_of_groups(items, minPartitions="1000")) == 301


def test_no_input_partition_exceeds_the_most_records() -> None:
    items = [Range(0, 10)] * 1000
    assert max(sizes_of_groups(items, maxRecordsPerPartition="30")) == 3
    assert max(sizes_of_groups(items, maxRecordsPerPartition="9")) == 1


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return 600 topic-partitions of two segments and three records each."""
    directory = tmp_path_factory.mktemp("many")
    write_partition(directory, _segments(), name="orders-0")
    for number in range(1, 600):
        partition = directory / f"orders-{number}"
        partition.mkdir()
        for path in (directory / "orders-0").iterdir():
            os.link(path, partition / path.name)
    return directory


def _segments() -> dict[int, list[Built]]:
    return {0: [batch_v2(plain_records(0, 2))], 2: [batch_v2(plain_records(2, 1))]}


def read_all(path: Path, **options: str) -> tuple[int, list[dict[str, object]]]:
    """Return the number of input partitions and the rows, each step in a process of its own."""
    source = DefaultSource(CaseInsensitiveDict({"path": str(path), **options}))
    schema = source.schema()
    reader = pickle.loads(pickle.dumps(source)).reader(schema)  # noqa: S301 - our own
    shipped = pickle.dumps(reader)
    partitions = [pickle.dumps(each) for each in reader.partitions()]
    rows = []
    for each in partitions:
        part = pickle.loads(each)  # noqa: S301
        assert isinstance(part, TaskPartition | ViewPartition)
        for batch in pickle.loads(shipped).read(part):  # noqa: S301
            rows += batch.to_pylist()
    return len(partitions), rows


@pytest.mark.thorough(one_in=2)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"startingOffsets": '{"orders":{"7":2}}', "columns": "partition,offset,value"},
        {"mode": "DROPMALFORMED"},
        {"table": "segments"},
    ],
)
def test_the_rows_are_those_of_one_partition_a_directory(
    many: Path, options: dict[str, str]
) -> None:
    alone, rows = read_all(many, packPartitions="false", **options)
    assert (alone, len(rows) > 1190) == (600, True)
    packed, packed_rows = read_all(many, **options)
    assert packed == 200
    assert packed_rows == rows
    few, few_rows = read_all(many, packPartitions="true", **options)
    assert few == 20  # of 31 at most
    assert few_rows == rows


def test_damage_in_one_log_of_an_input_partition_is_that_logs(tmp_path: Path) -> None:
    for number in range(3):
        write_partition(tmp_path, _segments(), name=f"orders-{number}")
    path = segment_path(tmp_path / "orders-1", 0)
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    columns = {"columns": "partition,offset,_corrupt_record"}
    expected = None
    for packing, parts in (("false", 3), ("true", 1)):
        found, rows = read_all(tmp_path, mode="PERMISSIVE", packPartitions=packing, **columns)
        assert found == parts
        places = [(row["partition"], row["offset"]) for row in rows]
        assert places == [(0, 0), (0, 1), (0, 2), (1, None), (1, 2), (2, 0), (2, 1), (2, 2)]
        assert "CRC" in str(rows[3]["_corrupt_record"])
        expected = expected or rows
        assert rows == expected
        _, left = read_all(tmp_path, mode="DROPMALFORMED", packPartitions=packing, **columns)
        assert left == [row for row in rows if row["_corrupt_record"] is None]
        with pytest.raises(CorruptRecordError, match="orders-1"):
            read_all(tmp_path, packPartitions=packing)
