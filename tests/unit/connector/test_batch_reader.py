"""Which topic-partitions share an input partition, and that what is read does not depend on it."""

from __future__ import annotations

import os
import pickle
from typing import TYPE_CHECKING

import pytest
from pyspark.sql.datasource import CaseInsensitiveDict

from pylog.errors import CorruptRecordError
from pyspark_pylog import DefaultSource
from pyspark_pylog.batch_reader import TaskPartition
from pyspark_pylog.table_reader import ViewPartition
from tests.support.batches import Built, batch_v2, plain_records
from tests.support.damage import flip
from tests.support.log_files import segment_path, write_partition

if TYPE_CHECKING:
    from pathlib import Path

RECORDS = 3


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
    flip(path, -1)
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
