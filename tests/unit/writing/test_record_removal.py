from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import pylog
from pylog.errors import (
    LogDirectoryError,
    OffsetInsideBatchError,
    OffsetOutOfRangeError,
    PolicyViolationError,
    UnknownTopicOrPartitionError,
)
from pylog.files.durable_io import DurableIO
from pylog.files.high_watermarks import mark_as_own
from tests.support.batches import batch_v2, plain_records
from tests.support.log_files import write_partition

if TYPE_CHECKING:
    from pathlib import Path

PLACE = pylog.TopicPartition("t", 0)
BATCHES = {first: [batch_v2(plain_records(first, 10))] for first in (0, 10)}


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """Two batches of ten records, each in a segment of its own."""
    write_partition(tmp_path, BATCHES, name="t-0")
    mark_as_own(DurableIO(), str(tmp_path))
    return tmp_path


def content_of(directory: Path) -> dict[str, bytes]:
    files = (path for path in directory.rglob("*") if path.is_file())
    return {str(path): path.read_bytes() for path in files}


def test_a_truncation_is_planned_then_done(logs: Path) -> None:
    before = content_of(logs)
    plan = pylog.jobs.plan_truncation(logs, ("t", 0), 10)
    size = len(BATCHES[10][0].data)
    assert (plan.before, plan.after) == (20, 10)
    assert plan.removal == (10, 20, 10, size, 0)
    assert content_of(logs) == before
    assert pylog.truncate_log(logs, ("t", 0), 10) == (20, 10, None, None)
    assert pylog.truncate_log(logs, ("t", 0), 10) == (10, 10, None, None)


def test_a_batch_goes_as_a_whole_or_not_at_all(logs: Path) -> None:
    for act in (pylog.jobs.plan_truncation, pylog.truncate_log):
        with pytest.raises(OffsetInsideBatchError):
            act(logs, ("t", 0), 15)
    assert pylog.jobs.plan_truncation(logs, ("t", 0), 15, takes_whole_batch=True).after == 10
    assert pylog.truncate_log(logs, ("t", 0), 15, takes_whole_batch=True) == (20, 10, None, None)


@pytest.mark.parametrize(("offset", "start"), [(0, 0), (12, 12), (None, 20)])
def test_a_deletion_of_records_is_planned_then_done(
    logs: Path, offset: int | None, start: int
) -> None:
    before = content_of(logs)
    plan = pylog.jobs.plan_record_deletion(logs, {("t", 0): offset})[PLACE]
    assert (plan.before, plan.after) == (0, start)
    assert plan.removal is not None
    assert plan.removal[:3] == (0, start, start)
    assert content_of(logs) == before
    assert pylog.delete_records(logs, {PLACE: offset}) == {PLACE: (0, start, None, None)}
    assert pylog.delete_records(logs, {PLACE: 0}) == {PLACE: (start, start, None, None)}


def test_an_offset_after_the_end_cannot_be_the_start(logs: Path) -> None:
    for act in (pylog.jobs.plan_record_deletion, pylog.delete_records):
        with pytest.raises(OffsetOutOfRangeError):
            act(logs, {PLACE: 21})


def test_a_partition_or_directory_must_be_there(logs: Path) -> None:
    for act in (pylog.jobs.plan_truncation, pylog.truncate_log):
        with pytest.raises(UnknownTopicOrPartitionError):
            act(logs, ("t", 1), 0)
        with pytest.raises(LogDirectoryError):
            act(logs / "none", ("t", 0), 0)
    for act_on_many in (pylog.jobs.plan_record_deletion, pylog.delete_records):
        with pytest.raises(UnknownTopicOrPartitionError):
            act_on_many(logs, {("t", 1): 0})
        with pytest.raises(LogDirectoryError):
            act_on_many(logs / "none", {("t", 0): 0})
    assert not (logs / "none").exists()


def test_records_of_several_partitions_are_deleted_or_of_none(logs: Path) -> None:
    write_partition(logs, BATCHES, name="t-1")
    write_partition(logs, BATCHES, name="c-0")
    with pylog.logs.LogManager([logs]) as manager:
        manager.store_topic_config("c", {"cleanup.policy": "compact"})
    other = pylog.TopicPartition("t", 1)
    refused: list[tuple[tuple[str, int], int, type[Exception]]] = [
        (("t", 1), 21, OffsetOutOfRangeError),
        (("t", 2), 1, UnknownTopicOrPartitionError),
        (("c", 0), 1, PolicyViolationError),
    ]
    for act in (pylog.jobs.plan_record_deletion, pylog.delete_records):
        for place, offset, error in refused:
            with pytest.raises(error):
                act(logs, {("t", 0): 5, place: offset})
            assert pylog.open_directory(logs)[PLACE].log_start_offset == 0
    assert pylog.delete_records(logs, {other: 3, PLACE: None}) == {
        other: (0, 3, None, None),
        PLACE: (0, 20, None, None),
    }
    views = pylog.open_directory(logs)
    starts = [views[each].log_start_offset for each in (PLACE, other, ("c", 0))]
    assert starts == [20, 3, 0]


def test_the_policy_of_all_topics_may_come_from_server_properties(
    logs: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    file = tmp_path_factory.mktemp("etc") / "server.properties"
    file.write_text("log.cleanup.policy=compact\n")
    compacted = pylog.ServerProperties.read(file)
    for act in (pylog.jobs.plan_record_deletion, pylog.delete_records):
        with pytest.raises(PolicyViolationError):
            act(logs, {PLACE: 5}, server_properties=compacted)
