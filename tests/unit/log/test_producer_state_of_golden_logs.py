"""Every batch of a broker's log, appended again: the side files come out as the broker wrote them.

Only logs that were never compacted, else the batches that made the state are gone. Brokers of 0.11
took a marker for a producer's last record, so their snapshots say something else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import pytest

from pylog.files.durable_io import DurableIO
from pylog.files.leader_epochs import LeaderEpochFileCache
from pylog.files.producer_snapshot import read_producer_snapshot
from pylog.files.transaction_index import read_transaction_index
from pylog.record.control_record import parse_end_transaction_marker
from pylog.record.record_batch import RecordBatch
from tests.support.golden import golden_partitions
from tests.unit.producers.producers import CLIENT, COORDINATOR, PARTITION, REPLICATION, Partition

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pylog.files.producer_snapshot import ProducerSnapshotEntry
    from pylog.producers.producer_state_entry import CompletedTransaction
    from tests.support.golden import GoldenRoot

SCENARIOS = (
    "compacted-txn:before",
    "crash-kill:before",
    "foreign-aiokafka",
    "foreign-kafka-python",
    "foreign-librdkafka",
    "idempotent",
    "internal-logdir",
    "txn",
)
UNCOMPACTED = [
    each
    for each in golden_partitions()
    if each.startswith(("2.8.2/", "3.9.1/", "4.3.0/"))
    and each.partition("/")[2].startswith(SCENARIOS)
]


class Replayed(NamedTuple):
    """What comes of a log: snapshots by offset, transaction index entries, epoch checkpoint."""

    snapshots: dict[int, list[ProducerSnapshotEntry]]
    aborted: list[tuple[int, int, int, int]]
    leader_epochs: str


def batches(directory: Path) -> Iterator[RecordBatch]:
    for path in sorted(directory.glob("*.log")):
        content, position = memoryview(path.read_bytes()), 0
        while position < len(content):
            batch = RecordBatch(content[position:])
            yield batch
            position += batch.header.size_bytes


def snapshot_paths(directory: Path) -> dict[int, Path]:
    return {int(path.stem): path for path in directory.glob("*.snapshot")}


def append(
    partition: Partition, batch: RecordBatch, *, as_leader: bool, is_coordinators: bool
) -> CompletedTransaction | None:
    """Append a producer's batch; return the transaction that it completes."""
    header = batch.header
    manager = partition.manager
    origin = REPLICATION
    if as_leader and (is_coordinators or header.is_control_batch):
        origin = COORDINATOR
    elif as_leader:
        origin = CLIENT
        known = manager.last_entry(header.producer_id)
        assert known is None or known.find_duplicate_batch(header) is None
    marker = None
    if header.is_control_batch:
        (record,) = batch.records()
        marker = parse_end_transaction_marker(record.key, record.value)
    info = manager.prepare_update(header.producer_id, origin)
    completed = info.append_batch(header, marker)
    manager.update(info)
    return completed


def replay(directory: Path, scratch: Path, *, as_leader: bool) -> Replayed:
    """Append all batches to an empty partition whose high watermark follows at once."""
    scratch.mkdir()
    partition = Partition(str(scratch))
    manager = partition.manager
    checkpoint = scratch / "leader-epoch-checkpoint"
    cache = LeaderEpochFileCache(PARTITION, str(checkpoint), io=DurableIO())
    # Offset commits; brokers repeat sequence numbers there, which nobody checks.
    is_coordinators = directory.name.startswith("__consumer_offsets-")
    wanted = sorted(snapshot_paths(directory))
    replayed = Replayed({}, [], "")

    def take_snapshots(end_offset: int) -> None:
        while wanted and wanted[0] <= end_offset:
            entries = [each.to_stored() for each in manager.active_producers.values()]
            replayed.snapshots[wanted.pop(0)] = sorted(entries)

    for batch in batches(directory):
        header = batch.header
        take_snapshots(header.offset)
        if header.magic < 2:
            cache.clear_and_flush()
            continue
        cache.assign(header.partition_leader_epoch, header.offset)
        completed = None
        if header.producer_id >= 0:
            completed = append(
                partition, batch, as_leader=as_leader, is_coordinators=is_coordinators
            )
        if completed is not None:
            if completed.is_aborted:
                lso = manager.last_stable_offset(completed)
                producer_id, first_offset, last_offset, _ = completed
                replayed.aborted.append((producer_id, first_offset, last_offset, lso))
            manager.complete_transaction(completed)
        manager.update_map_end_offset(header.next_offset)
        manager.on_high_watermark_updated(header.next_offset)
        assert manager.unreplicated_first_offset is None
    take_snapshots(manager.map_end_offset)
    return replayed._replace(leader_epochs=checkpoint.read_text())


@pytest.mark.parametrize("as_leader", [True, False], ids=["leader", "follower"])
@pytest.mark.parametrize("partition_id", UNCOMPACTED)
def test_replayed_log_has_the_side_files_that_the_broker_wrote(
    golden_root: GoldenRoot, tmp_path: Path, partition_id: str, *, as_leader: bool
) -> None:
    directory = golden_root.partition(partition_id).directory
    replayed = replay(directory, tmp_path / "replayed", as_leader=as_leader)
    for offset, path in snapshot_paths(directory).items():
        assert replayed.snapshots[offset] == sorted(read_producer_snapshot(path))
    aborted = [
        (each.producer_id, each.first_offset, each.last_offset, each.last_stable_offset)
        for path in sorted(directory.glob("*.txnindex"))
        for each in read_transaction_index(path)
    ]
    assert replayed.aborted == aborted
    assert replayed.leader_epochs == (directory / "leader-epoch-checkpoint").read_text()


def test_golden_logs_hold_what_is_tested(golden_root: GoldenRoot, tmp_path: Path) -> None:
    seen = {"snapshots": 0, "producers": 0, "open": 0, "aborted": 0}
    for number, partition_id in enumerate(UNCOMPACTED):
        directory = golden_root.partition(partition_id).directory
        replayed = replay(directory, tmp_path / str(number), as_leader=False)
        entries = [entry for entries in replayed.snapshots.values() for entry in entries]
        seen["snapshots"] += len(replayed.snapshots)
        seen["producers"] += len(entries)
        seen["open"] += sum(entry.current_txn_first_offset >= 0 for entry in entries)
        seen["aborted"] += len(replayed.aborted)
    assert seen == {"snapshots": 109, "producers": 169, "open": 47, "aborted": 54}


@pytest.mark.parametrize(
    "partition_id", ["2.8.2/mixed-magic:upgraded-0", "3.9.1/crash-kill:before/crash-0"]
)
def test_leader_epochs_of_a_log_are_those_of_its_batches(
    golden_root: GoldenRoot, tmp_path: Path, partition_id: str
) -> None:
    directory = golden_root.partition(partition_id).directory
    replayed = replay(directory, tmp_path / "replayed", as_leader=False)
    assert replayed.leader_epochs == (directory / "leader-epoch-checkpoint").read_text()


@pytest.mark.parametrize("partition_id", UNCOMPACTED)
def test_brokers_snapshot_is_taken_up_and_written_as_it_was(
    golden_root: GoldenRoot, tmp_path: Path, partition_id: str
) -> None:
    for offset, path in snapshot_paths(golden_root.partition(partition_id).directory).items():
        scratch = tmp_path / str(offset)
        scratch.mkdir()
        (scratch / path.name).write_bytes(path.read_bytes())
        loaded = Partition(str(scratch))
        loaded.manager.truncate_and_reload(0, offset, 0)
        assert loaded.manager.map_end_offset == offset
        loaded.manager.update_map_end_offset(offset + 1)
        written = loaded.manager.take_snapshot()
        assert written is not None
        assert read_producer_snapshot(written) == read_producer_snapshot(path)
        entries = read_producer_snapshot(path)
        opened = [each.current_txn_first_offset for each in entries]
        first_open = min((each for each in opened if each >= 0), default=None)
        assert loaded.manager.first_unstable_offset == first_open
