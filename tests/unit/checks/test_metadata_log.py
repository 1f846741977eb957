"""Damage of the log of the cluster's metadata: `pylog.checks.metadata_log`, through doctor."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import pytest

import pylog
from pylog.files.directory_lock import DirectoryLock
from tests.support.batches import batch_v2, plain_records
from tests.support.log_files import (
    mark_clean_shutdown,
    write_meta_properties,
    write_partition,
    write_topic_id,
)
from tests.support.metadata_log import (
    METADATA,
    TOPIC_ID_TEXT,
    data_batch,
    leader_change,
    partition_record,
    topic_record,
    write_snapshot,
)

if TYPE_CHECKING:
    from pathlib import Path

    from tests.unit.checks.conftest import AtThirdPause

TOPIC = [topic_record("orders"), partition_record(0, 1, (1,))]
FIRST = leader_change(0, (1,))


def write_node(directory: Path, batches: list[bytes], *, snapshot: int | None = None) -> Path:
    """Write a node with orders-0, and its log of the metadata of these batches."""
    place = write_partition(directory, {0: [batch_v2(plain_records(0, 3))]}, name="orders-0")
    write_topic_id(place, TOPIC_ID_TEXT)
    metadata = directory / METADATA
    metadata.mkdir()
    (metadata / f"{0:020d}.log").write_bytes(b"".join(batches))
    if snapshot is not None:
        write_snapshot(metadata, snapshot, TOPIC)
    write_meta_properties(directory)
    mark_clean_shutdown(directory)
    return directory


def flipped(batch: bytes) -> bytes:
    return batch[:-1] + bytes([batch[-1] ^ 1])


def at_offset(batch: bytes, offset: int) -> bytes:
    return struct.pack(">q", offset) + batch[8:]


def strays(logs: Path) -> list[str]:
    return [each.name for each in pylog.doctor(logs).verdict.stray_partitions]


def test_what_is_cut_off_makes_strays_where_no_snapshot_has_it(tmp_path: Path) -> None:
    topic = data_batch(1, TOPIC).data
    assert strays(write_node(tmp_path / "sound", [FIRST.data, topic])) == []
    assert strays(write_node(tmp_path / "cut", [FIRST.data, flipped(topic)])) == ["orders-0"]


@pytest.mark.parametrize("voters", [(1,), (1, 2, 3)])
def test_a_topic_that_is_made_while_the_metadata_is_read_is_no_stray(
    tmp_path: Path, at_third_pause: AtThirdPause, voters: tuple[int, ...]
) -> None:
    first = leader_change(0, voters).data
    log = write_node(tmp_path, [first]) / METADATA / f"{0:020d}.log"
    assert strays(tmp_path) == ["orders-0"]
    with_topic = first + data_batch(1, TOPIC).data
    at_third_pause(lambda: log.write_bytes(with_topic))
    with DirectoryLock(tmp_path):
        assert strays(tmp_path) == []


def test_damage_below_the_newest_snapshot_costs_what_follows_that(tmp_path: Path) -> None:
    removed = data_batch(3, [b"\x01\x09\x00" + bytes(range(16)) + b"\x00"]).data
    topic = data_batch(1, TOPIC).data
    sound = write_node(tmp_path / "sound", [FIRST.data, topic, removed], snapshot=3)
    assert strays(sound) == ["orders-0"]  # the topic was deleted
    cut = write_node(tmp_path / "cut", [FIRST.data, flipped(topic), removed], snapshot=3)
    entry = struct.pack(">ii", 3, len(FIRST.data + topic))  # leads behind the damage
    (cut / METADATA / f"{0:020d}.index").write_bytes(entry)
    assert strays(cut) == []  # a node deletes the log, and continues from the snapshot


def test_a_wrong_offset_below_the_newest_snapshot_costs_nothing(tmp_path: Path) -> None:
    batches = [FIRST.data, at_offset(data_batch(1, TOPIC).data, 9)]
    last = data_batch(3, [topic_record("other", bytes(range(1, 17)))]).data
    verdict = pylog.doctor(write_node(tmp_path, [*batches, last], snapshot=3)).verdict
    assert (verdict.would_start, verdict.stray_partitions, verdict.consumers) == (True, [], [])


@pytest.mark.parametrize("offset", [0, 9])
def test_what_a_wrong_offset_after_the_newest_snapshot_costs_is_not_known(
    tmp_path: Path, offset: int
) -> None:
    wrong = at_offset(data_batch(1, TOPIC).data, offset)
    assert pylog.doctor(write_node(tmp_path, [FIRST.data, wrong])).verdict.would_start is None


@pytest.mark.parametrize("snapshot", [None, 3])
def test_a_last_batch_below_its_segment_ends_a_broker_that_was_stopped_in_order(
    tmp_path: Path, snapshot: int | None
) -> None:
    # 4.4.0: "Split operation is only permitted for segments with overflow"
    wrong = at_offset(data_batch(1, TOPIC).data, -100)
    verdict = pylog.doctor(write_node(tmp_path, [FIRST.data, wrong], snapshot=snapshot)).verdict
    assert verdict.would_start is False
    assert "batch ends at offset -99, below the segment's 0" in verdict.reasons[0]


def test_a_snapshot_suffices_without_a_log(tmp_path: Path) -> None:
    logs = write_node(tmp_path, [FIRST.data], snapshot=3)
    (logs / METADATA / f"{0:020d}.log").rename(logs / METADATA / f"{0:020d}.index")
    verdict = pylog.doctor(logs).verdict
    assert (verdict.would_start, verdict.stray_partitions) == (True, [])
