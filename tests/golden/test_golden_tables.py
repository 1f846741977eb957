"""The metadata tables of every golden partition are what Kafka's own tools said of it."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import pytest

from tests.golden.dumped_tables import LIVE, SERVED, batch_as_dumped
from tests.support.kafka_dump import (
    Fields,
    dumped_batches,
    dumped_files,
    has_batches,
    not_dumped,
    number,
    optional_number,
)
from tests.support.metadata_rows import Row, table_of

if TYPE_CHECKING:
    from tests.support.golden import GoldenRoot

INDEX_FILES = {".index": "offset", ".timeindex": "time", ".txnindex": "transaction"}


@pytest.mark.parametrize("partition_id", LIVE)
def test_index_entries_are_those_that_kafka_dumps(
    golden_root: GoldenRoot, partition_id: str
) -> None:
    partition = golden_root.partition(partition_id)
    kafkas = {
        name: [without_zero_slots(fields) for fields in lines]
        for name, lines in dumped_files(partition).items()
        if name[20:] in INDEX_FILES
    }
    ours: dict[str, list[Row]] = {name: [] for name in kafkas}
    for row in table_of(partition, "index_entries"):
        assert row["index"] == INDEX_FILES[row["file"][20:]]
        assert row["entry"] == len(ours[row["file"]])
        assert row["defect"] is None
        ours[row["file"]].append(row)
    for name in ours.keys() - not_dumped(partition):
        rows = ours[name]
        assert [entry_as_dumped(row) for row in rows] == list(filter(None, kafkas[name])), name


def entry_as_dumped(row: Row) -> Row:
    names = {
        "offset": {"offset": "offset", "position": "position"},
        "time": {"timestamp": "timestamp", "offset": "offset"},
        "transaction": {
            "producer_id": "producerId",
            "first_offset": "firstOffset",
            "last_offset": "lastOffset",
            "last_stable_offset": "lastStableOffset",
        },
    }[row["index"]]
    return {kafkas: row[ours] for ours, kafkas in names.items()}


def without_zero_slots(fields: Fields) -> Row:
    """Return an entry; nothing for slot 0 of an unused index, which Kafka shows."""
    entry = {name: int(value) for name, value in fields.items() if name != "version"}
    is_unused = entry.get("timestamp") == 0 or entry.get("position") == 0
    return {} if is_unused else entry


@pytest.mark.parametrize("partition_id", LIVE)
def test_producers_are_those_that_kafka_dumps(golden_root: GoldenRoot, partition_id: str) -> None:
    partition = golden_root.partition(partition_id)
    kafkas = {
        name: sorted((producer_as_dumped(fields) for fields in lines), key=by_producer)
        for name, lines in dumped_files(partition).items()
        if name.endswith(".snapshot")
    }
    found: dict[str, list[Row]] = {name: [] for name in kafkas}
    for row in table_of(partition, "producers"):
        assert row["snapshot_offset"] == int(row["snapshot"][:20])
        assert row["defect"] is None
        if row["snapshot"] in kafkas:  # tools before 0.11.0.3 and 2.x could not dump all
            found[row["snapshot"]].append(row)
    assert {
        name: [{key: row[key] for key in PRODUCER} for row in rows] for name, rows in found.items()
    } == kafkas


PRODUCER = {
    "producer_id": "producerId",
    "producer_epoch": "producerEpoch",
    "last_sequence": "lastSequence",
    "last_offset": "lastOffset",
    "offset_delta": "offsetDelta",
    "coordinator_epoch": "coordinatorEpoch",
}


def by_producer(row: Row) -> int:
    producer_id: int = row["producer_id"]
    return producer_id


def producer_as_dumped(fields: Fields) -> Row:
    row: Row = {ours: number(fields, kafkas) for ours, kafkas in PRODUCER.items()}
    return row


@pytest.mark.parametrize("partition_id", LIVE)
def test_first_sequences_times_and_open_transactions_are_those_that_kafka_dumps(
    golden_root: GoldenRoot, partition_id: str
) -> None:
    partition = golden_root.partition(partition_id)
    rows = {(row["snapshot"], row["producer_id"]): row for row in table_of(partition, "producers")}
    for name, lines in dumped_files(partition).items():
        for fields in lines if name.endswith(".snapshot") else ():
            row = rows[name, int(fields["producerId"])]
            assert row["current_txn_first_offset"] == optional_number(
                fields["currentTxnFirstOffset"]
            )
            stamp = fields.get("lastTimestamp") or fields["timestamp"]
            assert row["timestamp"] == (None if stamp == "-1" else int(stamp))
            if "firstSequence" in fields:
                assert row["first_sequence"] == number(fields, "firstSequence")


@pytest.mark.parametrize("partition_id", SERVED)
def test_partitions_begin_and_end_where_kafka_says(
    golden_root: GoldenRoot, partition_id: str
) -> None:
    partition = golden_root.partition(partition_id)
    (row,) = table_of(partition, "partitions")
    stated = partition.offsets
    assert stated is not None
    assert (row["log_start_offset"], row["log_end_offset"]) == (
        stated["earliest"],
        stated["latest"],
    )
    if stated.get("latestReadCommitted") is not None:
        assert row["last_stable_offset"] == stated["latestReadCommitted"]
    logs = list(partition.directory.glob("*.log"))
    assert (row["segments"], row["size_in_bytes"]) == (
        len(logs),
        sum(log.stat().st_size for log in logs),
    )
    metadata = partition.directory / "partition.metadata"
    topic_id = metadata.read_text().rpartition("topic_id: ")[2] if metadata.exists() else None
    assert row["topic_id"] == topic_id


@pytest.mark.parametrize("partition_id", SERVED)
def test_leader_epochs_are_those_of_the_checkpoint_up_to_the_end_of_the_log(
    golden_root: GoldenRoot, partition_id: str
) -> None:
    partition = golden_root.partition(partition_id)
    rows = table_of(partition, "leader_epochs")
    checkpoint = partition.directory / "leader-epoch-checkpoint"
    lines = checkpoint.read_text().splitlines()[2:] if checkpoint.exists() else []
    assert [f"{row['epoch']} {row['start_offset']}" for row in rows] == lines
    assert partition.offsets is not None
    ends = [row["start_offset"] for row in rows[1:]] + [partition.offsets["latest"]]
    assert [row["end_offset"] for row in rows] == ends[: len(rows)]


@pytest.mark.parametrize("partition_id", LIVE)
def test_segments_add_up_to_the_batches_that_kafka_dumps(
    golden_root: GoldenRoot, partition_id: str
) -> None:
    partition = golden_root.partition(partition_id)
    rows = table_of(partition, "segments")
    assert [row["segment"] for row in rows] == sorted(
        path.name for path in partition.directory.glob("*.log")
    )
    is_crashed = partition.state == "before" and "crash" in partition.scenario
    files = dumped_files(partition)
    for row in rows:
        assert row["base_offset"] == int(row["segment"][:20])
        for kind, suffix in (("offset", ".index"), ("time", ".timeindex")):
            name = row["segment"].replace(".log", suffix)
            state = row[f"{kind}_index"]
            if not (partition.directory / name).exists():
                assert state == {"state": "missing", "entries": None, "reason": None}
            elif not is_crashed:
                entries = len(list(filter(None, map(without_zero_slots, files.get(name, [])))))
                state_name = "ok" if entries else "empty"
                assert state == {"state": state_name, "entries": entries, "reason": None}, name
    if not has_batches(partition):
        return
    for row in rows:
        lines = dumped_batches(partition)[row["segment"]]
        batches = [batch_as_dumped(row["segment"], fields) for fields in lines]
        ensure_adds_up(row, batches)


def ensure_adds_up(row: Row, batches: list[Row]) -> None:
    counts = [batch["records"] for batch in batches]
    assert row["batches"] == len(batches)
    assert row["records"] == (None if None in counts else sum(counts))
    stamps = [batch["max_timestamp"] for batch in batches if batch["max_timestamp"] is not None]
    assert row["max_timestamp"] == max(stamps, default=None)
    assert row["magics"] == sorted({batch["magic"] for batch in batches})
    assert set(row["codecs"]) == {batch["codec"] for batch in batches}
    end = batches[-1] if batches else None
    assert row["valid_bytes"] == (0 if end is None else end["position"] + end["size_in_bytes"])
    assert row["next_offset"] == (row["base_offset"] if end is None else end["last_offset"] + 1)


def test_kafka_said_much_of_tables(golden_root: GoldenRoot) -> None:
    """So that comparisons with nothing do not pass for comparisons."""
    counts: dict[str, int] = defaultdict(int)
    for partition_id in LIVE:
        partition = golden_root.partition(partition_id)
        for name, lines in dumped_files(partition).items():
            counts[name[20:]] += sum("isRecord" not in fields for fields in lines)
    assert counts[".log"] > 7_000
    assert counts[".index"] > 2_000
    assert counts[".timeindex"] > 1_500
    assert counts[".txnindex"] > 90
    assert counts[".snapshot"] > 300
