"""What is appended comes once, whatever happens to files and partitions meanwhile."""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import pylog
from tests.support.batches import batch_v2, plain_records
from tests.support.log_files import (
    segment_path,
    write_log_start_offsets,
    write_partition,
    write_segment,
)

if TYPE_CHECKING:
    from pathlib import Path

Place = tuple[str, int, int]


def batch(base: int, count: int = 2) -> bytes:
    return batch_v2(plain_records(base, count)).data


def append(partition: Path, base_offset: int, data: bytes) -> None:
    with segment_path(partition, base_offset).open("ab") as file:
        file.write(data)


def followed(path: Path, **arguments: Any) -> pylog.results.FollowedRecords:  # noqa: ANN401 - any
    columns = ("topic", "partition", "offset")
    return pylog.results.FollowedRecords(pylog.follow(path), columns=columns, **arguments)


def new(records: pylog.results.FollowedRecords) -> list[Place]:
    return [
        (row["topic"], row["partition"], row["offset"])
        for found in records.poll()
        for row in found.to_pylist()
    ]


def offsets(records: pylog.results.FollowedRecords) -> list[int]:
    return [place[2] for place in new(records)]


@pytest.fixture
def partition(tmp_path: Path) -> Path:
    return write_partition(tmp_path, {0: [batch_v2(plain_records(0, 2))]})


def test_each_record_comes_once(tmp_path: Path, partition: Path) -> None:
    records = followed(tmp_path)
    assert offsets(records) == [0, 1]
    assert offsets(records) == []
    append(partition, 0, batch(2))
    assert offsets(records) == [2, 3]
    append(partition, 0, batch(4)[:-1])  # a writer is in the middle of it
    assert offsets(records) == []
    append(partition, 0, batch(4)[-1:])
    assert offsets(records) == [4, 5]


def test_rolls_and_new_partitions_are_followed(tmp_path: Path, partition: Path) -> None:
    records = followed(tmp_path, start="latest")
    assert new(records) == []
    append(partition, 0, batch(2))
    write_segment(partition, 4, [batch_v2(plain_records(4, 1))])
    write_partition(tmp_path, {7: [batch_v2(plain_records(7, 1))]}, name="web-0")
    assert new(records) == [("orders", 0, 2), ("orders", 0, 3), ("orders", 0, 4), ("web", 0, 7)]


def test_only_partitions_with_the_numbers_are_followed(tmp_path: Path, partition: Path) -> None:
    write_partition(tmp_path, {0: [batch_v2(plain_records(0, 1))]}, name="orders-1")
    records = followed(tmp_path, partitions=[1])
    assert new(records) == [("orders", 1, 0)]
    append(partition, 0, batch(2))
    assert new(records) == []


def test_what_retention_takes_first_is_warned_of(
    tmp_path: Path, partition: Path, caplog: pytest.LogCaptureFixture
) -> None:
    records = followed(tmp_path)
    assert offsets(records) == [0, 1]
    append(partition, 0, batch(2))
    write_segment(partition, 4, [batch_v2(plain_records(4, 2))])
    for suffix in (".log", ".index", ".timeindex"):
        segment_path(partition, 0, suffix).unlink()
    assert offsets(records) == [4, 5]
    assert [record.getMessage() for record in caplog.records] == [
        "orders-0: 2 records, offsets 2 to 3, deleted before they were read"
    ]
    write_log_start_offsets(tmp_path, {("orders", 0): 6})
    assert offsets(records) == []
    assert len(caplog.records) == 1


def test_a_truncation_is_warned_of_and_nothing_comes_twice(
    tmp_path: Path, partition: Path, caplog: pytest.LogCaptureFixture
) -> None:
    append(partition, 0, batch(2))
    records = followed(tmp_path)
    assert offsets(records) == [0, 1, 2, 3]
    path = segment_path(partition, 0)
    path.write_bytes(path.read_bytes()[: len(batch(0))])
    assert offsets(records) == []
    [warning] = [record.getMessage() for record in caplog.records]
    assert warning == (
        "orders-0 has been truncated: some of the records below offset 4 are others now than those "
        "that have been read, or gone"
    )
    append(partition, 0, batch(2))
    assert offsets(records) == [2, 3]


def test_a_partition_that_goes_and_comes_back_is_gone_on_with(
    tmp_path: Path, partition: Path
) -> None:
    write_partition(tmp_path, {0: [batch_v2(plain_records(0, 1))]}, name="web-0")
    records = followed(tmp_path)
    assert len(new(records)) == 3
    partition.rename(tmp_path / "aside")
    shutil.move(tmp_path / "aside", tmp_path.parent / "aside")
    assert new(records) == []
    shutil.move(tmp_path.parent / "aside", partition)
    append(partition, 0, batch(2))
    assert offsets(records) == [2, 3]


def test_a_writer_that_rolls_and_adds_partitions_is_followed_record_by_record(
    tmp_path: Path,
) -> None:
    rounds, rows = 25, 5
    properties = {"segment.bytes": "2000", "segment.index.bytes": "1048576"}

    pylog.create_topic(tmp_path, "orders", 1, properties=properties)

    def write() -> None:
        for at in range(rounds):
            table = pa.table({"value": [b"v" * 100] * rows})
            pylog.write_topic(tmp_path, "orders", table, partitions=1)
            if at == rounds // 2:
                pylog.create_topic(tmp_path, "web", 1)
                pylog.write_topic(tmp_path, "web", table, partitions=1)

    records = followed(tmp_path)
    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(write)
        found: list[Place] = []
        while not writing.done():
            found += new(records)
        writing.result()
        found += new(records)
    by_topic = {
        topic: [offset for name, _, offset in found if name == topic] for topic in ("orders", "web")
    }
    assert by_topic == {"orders": list(range(rounds * rows)), "web": list(range(rows))}
    assert len(list((tmp_path / "orders-0").glob("*.log"))) > 3
