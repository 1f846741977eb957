"""Nothing is removed on the word of a record that may not be replicated."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

import pylog
from pylog.files.checkpoint_file import read_offset_checkpoint
from pylog.log.log_manager import LogManager
from tests.support.batches import Stored, batch_v2
from tests.support.damage import flip
from tests.support.log_files import write_high_watermarks, write_log_start_offsets, write_partition
from tests.support.metadata_log import (
    METADATA,
    partition_record,
    topic_record,
    write_metadata_log,
)
from tests.unit.files.replicated_logs import (
    CHECKPOINT,
    COMPACT,
    DAY_MS,
    NOW_MS,
    ORDERS,
    TRIM,
    compact,
    logs,
    trim,
)

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["logs"]


MARK = ".pylog-only-replica"


# ---- where it starts


@pytest.mark.parametrize(
    ("checkpoint", "log_start", "expected"),
    [(None, 0, 0), (0, 0, 0), (3, 0, 3), (4, 0, 4), (9, 0, 4), (1, 2, 2), (None, 2, 2)],
)
def test_it_starts_at_the_checkpoint_within_the_log(
    logs: Path, checkpoint: int | None, log_start: int, expected: int
) -> None:
    if checkpoint is not None:
        write_high_watermarks(logs, {ORDERS: checkpoint})
    write_log_start_offsets(logs, {ORDERS: log_start})
    with LogManager([logs]) as manager:
        assert manager.get_log(ORDERS).high_watermark == expected
    written = read_offset_checkpoint(logs / CHECKPOINT).get(ORDERS)
    assert written == (None if checkpoint is None else min(checkpoint, 4))


def test_a_checkpoint_that_cannot_be_read_says_nothing(logs: Path) -> None:
    (logs / CHECKPOINT).write_bytes(bytes(30))
    with LogManager([logs]) as manager:
        assert manager.get_log(ORDERS).high_watermark == 0


@pytest.mark.parametrize("checkpoint", [None, 0, 2, 4])
def test_what_appends_nothing_raises_no_checkpoint(logs: Path, checkpoint: int | None) -> None:
    if checkpoint is not None:
        write_high_watermarks(logs, {ORDERS: checkpoint})
    for act in (
        lambda: compact(logs, high_watermark="log-end"),
        lambda: pylog.alter_topic(logs, "orders", properties=TRIM),
        lambda: pylog.create_topic(logs, "events", 1),
        lambda: pylog.write_topic(logs, "events", [{"value": b"v"}]),
        lambda: pylog.truncate_log(logs, ORDERS, 4),
        lambda: pylog.delete_records(logs, {ORDERS: None}, high_watermark="log-end"),
        lambda: trim(logs, high_watermark="log-end"),
    ):
        act()
        assert read_offset_checkpoint(logs / CHECKPOINT).get(ORDERS) == checkpoint


def test_an_append_says_nothing_of_the_records_before_it(logs: Path) -> None:
    write_high_watermarks(logs, {ORDERS: 2})
    pylog.write_topic(logs, "orders", [{"value": b"v"}])
    assert read_offset_checkpoint(logs / CHECKPOINT)[ORDERS] == 2
    job = pylog.jobs.WriteJob(str(logs), "job", topic="orders")
    with job.stage("task") as stage:
        stage.append(pylog.scan(logs, columns=["key", "value"]).to_table().to_batches()[0])
    job.commit([stage.staged])
    assert read_offset_checkpoint(logs / CHECKPOINT)[ORDERS] == 2
    assert trim(logs).log_start_offset == 2


def test_an_append_after_replicated_records_is_replicated(logs: Path) -> None:
    write_high_watermarks(logs, {ORDERS: 4})
    pylog.write_topic(logs, "orders", [{"value": b"v"}])
    assert read_offset_checkpoint(logs / CHECKPOINT)[ORDERS] == 5


def test_a_truncation_takes_the_checkpoint_with_it(logs: Path) -> None:
    write_high_watermarks(logs, {ORDERS: 4})
    pylog.truncate_log(logs, ORDERS, 3)
    assert read_offset_checkpoint(logs / CHECKPOINT)[ORDERS] == 3


# ---- directories of our own


def own(tmp_path: Path) -> Path:
    logs = tmp_path.with_name(f"{tmp_path.name}-own")
    with LogManager([logs]) as manager:
        pylog.create_topic(manager, "orders", 1)
    for number in range(4):
        row = {"key": b"key", "value": b"%d" % number, "timestamp": NOW_MS - DAY_MS}
        pylog.write_topic(logs, "orders", [row])
        with LogManager([logs]) as manager:
            manager.get_log(ORDERS).roll()
    return logs


@pytest.mark.parametrize("checkpoint", [None, {}, {ORDERS: 1}])
def test_our_own_directory_has_no_other_replica_whatever_the_checkpoint_says(
    tmp_path: Path, checkpoint: dict[tuple[str, int], int] | None
) -> None:
    logs = own(tmp_path)
    assert (logs / MARK).exists()
    (logs / CHECKPOINT).unlink()
    if checkpoint is not None:
        write_high_watermarks(logs, checkpoint)
    with LogManager([logs]) as manager:
        assert manager.get_log(ORDERS).high_watermark == 4
    assert read_offset_checkpoint(logs / CHECKPOINT) == {ORDERS: 4}


def test_after_a_crash_our_own_directory_holds_nothing_back(tmp_path: Path) -> None:
    logs = own(tmp_path)
    manager = LogManager([logs]).startup()
    log = manager.get_log(ORDERS)
    log.append_as_leader(bytes(batch_v2([Stored(0, NOW_MS, b"key", b"late")]).data))
    manager.abandon()
    assert read_offset_checkpoint(logs / CHECKPOINT) == {ORDERS: 4}
    assert compact(logs).held_back is None
    assert read_offset_checkpoint(logs / CHECKPOINT) == {ORDERS: 5}


def test_once_a_broker_has_our_directory_its_checkpoint_counts(tmp_path: Path, logs: Path) -> None:
    mine = own(tmp_path)
    shutil.copy(logs / "meta.properties", mine)
    write_high_watermarks(mine, {ORDERS: 1})
    assert trim(mine).deleted[-1].next_offset == 1


def test_a_directory_that_somebody_else_made_is_not_our_own(logs: Path) -> None:
    (logs / "meta.properties").unlink()
    pylog.write_topic(logs, "events", [{"value": b"v"}])
    assert not (logs / MARK).exists()
    shutil.rmtree(logs / "orders-0")
    shutil.rmtree(logs / "events-0")
    pylog.write_topic(logs, "events", [{"value": b"v"}])  # a broker's checkpoint is left
    assert not (logs / MARK).exists()


# ---- the cluster's metadata


@pytest.mark.parametrize(
    ("replicas", "voters", "topic_id", "expected"),
    [
        ((1,), (1,), None, 4),
        ((1, 2), (1,), None, 1),
        ((2,), (1,), None, 1),
        ((1,), (1, 2, 3), None, 1),  # nobody can tell whether the controllers agree
        ((1,), (1,), "AAECAwQFBgcICQoLDA0ODg", 1),  # another topic of that name
    ],
)
def test_the_only_replica_by_the_metadata_is_replicated_to_its_end(
    logs: Path,
    replicas: tuple[int, ...],
    voters: tuple[int, ...],
    topic_id: str | None,
    expected: int,
) -> None:
    write_high_watermarks(logs, {ORDERS: 1})
    records = [topic_record("orders"), partition_record(0, 1, replicas)]
    write_metadata_log(logs, records, voters=voters)
    if topic_id is not None:
        path = logs / "orders-0" / "partition.metadata"
        path.write_text(f"version: 0\ntopic_id: {topic_id}")
    with pylog.logs.own_log_directory(logs) as manager:
        assert manager.get_log(ORDERS).high_watermark == expected
    assert read_offset_checkpoint(logs / CHECKPOINT)[ORDERS] == 1
    assert pylog.jobs.plan_record_deletion(logs, {ORDERS: None})[ORDERS].after == expected
    assert pylog.delete_records(logs, {ORDERS: None})[ORDERS].after == expected


def test_metadata_that_cannot_be_read_say_nothing(logs: Path) -> None:
    write_high_watermarks(logs, {ORDERS: 1})
    write_metadata_log(logs, [topic_record("orders"), partition_record(0, 1, (1,))])
    path = logs / METADATA / f"{0:020}.log"
    flip(path, -1, 0xFF)
    with pylog.logs.own_log_directory(logs) as manager:
        assert manager.get_log(ORDERS).high_watermark == 1


def test_who_opens_a_manager_says_what_the_metadata_say(logs: Path) -> None:
    asked = []

    def is_only_replica(place: pylog.TopicPartition) -> bool:
        asked.append(place)
        return True

    write_high_watermarks(logs, {ORDERS: 4})
    for high_watermark, expected in ((4, []), (3, [ORDERS])):
        write_high_watermarks(logs, {ORDERS: high_watermark})
        with LogManager([logs], is_only_replica=is_only_replica) as manager:
            assert manager.get_log(ORDERS).high_watermark == 4
        assert asked == expected  # not where it makes no difference


# ---- time


def test_producers_expire_by_the_time_of_the_run(tmp_path: Path) -> None:
    stays = {}
    for days in (0, 2):
        logs = tmp_path / str(days)
        segments = {
            0: [batch_v2([Stored(0, NOW_MS, b"k", b"0")], producer_id=7, base_sequence=0)],
            1: [batch_v2([Stored(1, NOW_MS, b"k", b"1")])],
            2: [batch_v2([Stored(2, NOW_MS, b"k", b"2")])],
        }
        write_partition(logs, segments)
        write_high_watermarks(logs, {ORDERS: 3})
        pylog.compact(logs, config=COMPACT, now_ms=NOW_MS + days * DAY_MS)
        headers = pylog.read_table(logs, "batches").to_pylist()
        stays[days] = [row["base_offset"] for row in headers]
    assert stays == {0: [0, 1, 2], 2: [1, 2]}
