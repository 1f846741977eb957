from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

import pylog
from tests.support.batches import Stored, batch_v2
from tests.support.log_files import write_partition
from tests.support.mirror_records import checkpoint, heartbeat, offset_sync

if TYPE_CHECKING:
    from pathlib import Path


def stored(*records: tuple[bytes | None, bytes | None]) -> list[Stored]:
    return [Stored(offset, 1000 + offset, *each) for offset, each in enumerate(records)]


def test_each_checkpoint_is_a_row_and_the_last_of_a_key_is_marked(tmp_path: Path) -> None:
    records = [
        checkpoint("pay", "a.orders", 1, 30, 12, metadata="m"),
        checkpoint("pay", "a.orders", 1, 40, 22),
        (b"broken", b"broken"),
        (checkpoint("gone", "a.orders", 1, 1, 1)[0], None),
    ]
    write_partition(tmp_path, {0: [batch_v2(stored(*records))]}, name="a.checkpoints.internal-0")
    write_partition(tmp_path, {0: [batch_v2(stored(*records))]}, name="orders-0")
    rows = pylog.read_table(tmp_path, "mm2_checkpoints").to_pylist()
    assert [each["topic"] for each in rows] == ["a.checkpoints.internal"] * 4
    first, second, broken, gone = rows
    assert first["timestamp"] == dt.datetime(1970, 1, 1, 0, 0, 1, tzinfo=dt.UTC)
    named = ["source_cluster", "consumer_group", "mirrored_topic", "mirrored_partition"]
    assert [first[each] for each in named] == ["a", "pay", "a.orders", 1]
    assert (first["upstream_offset"], first["downstream_offset"], first["committed_metadata"]) == (
        30,
        12,
        "m",
    )
    assert [each["is_latest"] for each in rows] == [False, True, True, True]
    assert (second["offset"], second["problem"]) == (1, None)
    assert "is no checkpoint of MirrorMaker 2" in broken["problem"]
    assert (gone["consumer_group"], gone["problem"]) == (None, None)


def test_offset_syncs_and_heartbeats_are_rows(tmp_path: Path) -> None:
    syncs = batch_v2(stored(offset_sync("orders", 2, 7, 5)))
    write_partition(tmp_path, {0: [syncs]}, name="mm2-offset-syncs.b.internal-0")
    beats = batch_v2(stored(heartbeat("a", "b", 1_700_000_000_000)))
    write_partition(tmp_path, {0: [beats]}, name="a.heartbeats-0")
    [sync] = pylog.read_table(tmp_path, "mm2_offset_syncs").to_pylist()
    names = ("other_cluster", "source_topic", "source_partition")
    assert [sync[each] for each in names] == ["b", "orders", 2]
    assert (sync["upstream_offset"], sync["downstream_offset"]) == (7, 5)
    [beat] = pylog.read_table(tmp_path, "mm2_heartbeats").to_pylist()
    assert (beat["source_cluster"], beat["target_cluster"]) == ("a", "b")
    assert beat["heartbeat"] == dt.datetime(2023, 11, 14, 22, 13, 20, tzinfo=dt.UTC)
