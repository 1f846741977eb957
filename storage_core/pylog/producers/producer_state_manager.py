"""The producers of one partition, their transactions, and the snapshots that outlive a restart.

A producer stays known until it has been idle for ``producer.id.expiration.ms``, or its last batch
is out of the log when the log is loaded. Two kinds of transactions hold the last stable offset
back: open ones, and completed ones whose marker is not below the high watermark yet.

The state can always be rebuilt from the log. A snapshot at offset N saves reading what lies below
N; the log takes one where a segment begins, and one when it is closed.

===================== ===========================================================
step                  what a crash in it leaves, and what happens then
===================== ===========================================================
write a snapshot      a short file: its checksum is wrong, so loading deletes it
                      and takes the next older snapshot
rename to .deleted    one of both names; start-up deletes ``*.deleted`` files
delete                nothing, or the file: a stray, deleted when the log is loaded
===================== ===========================================================

Source: ProducerStateManager, SnapshotFile (Kafka 4.3; KIP-98, KIP-360, KIP-890).
"""

from __future__ import annotations

import errno
import logging
import os
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from pylog.errors import (
    CorruptSnapshotError,
    InvalidProducerEpochError,
    KafkaStorageError,
    LogLoadingError,
)
from pylog.files import disk
from pylog.files.file_names import (
    DELETED_FILE_SUFFIX,
    PRODUCER_SNAPSHOT_FILE_SUFFIX,
    file_name_prefix,
    find_segment_file_name,
)
from pylog.files.producer_snapshot import read_producer_snapshot, write_producer_snapshot
from pylog.locations import printable_location
from pylog.model import NO_PRODUCER_ID, AppendOrigin, ControlRecordType
from pylog.producers.producer_append_info import ProducerAppendInfo
from pylog.producers.producer_state_entry import (
    LastRecord,
    ProducerStateEntry,
    TransactionsByFirstOffset,
    TxnMetadata,
)
from pylog.record.batch_header import MAGIC_VALUE_V2
from pylog.record.control_record import (
    EndTransactionMarker,
    parse_control_record_type,
    parse_end_transaction_marker,
)
from pylog.record.record_batch import RecordBatch

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from pylog.files.durable_io import DurableIO
    from pylog.files.producer_snapshot import ProducerSnapshotEntry
    from pylog.log_file.batch_walk import PositionedHeader
    from pylog.model import TopicPartition
    from pylog.producers.producer_state_entry import (
        BatchMetadata,
        CompletedTransaction,
    )
    from pylog.record.batch_header import BatchHeader


_LOGGER = logging.getLogger(__name__)


class ProducerSnapshots:
    """Offsets of the snapshots in a directory; an offset is known if and only if its file is ours.

    Changes files and knowledge together. Guarded by the log's lock.
    """

    def __init__(self, directory: str, io: DurableIO) -> None:
        self._directory = directory
        self._io = io

    def reload(self) -> None:
        """Look at the directory again when they are next asked for."""
        self.__dict__.pop("_offsets", None)

    @cached_property
    def _offsets(self) -> set[int]:
        suffix = PRODUCER_SNAPSHOT_FILE_SUFFIX
        try:
            with disk.scandir(self._directory) as entries:
                names = [e.name for e in entries if e.name.endswith(suffix) and e.is_file()]
        except FileNotFoundError:
            names = []
        except OSError as error:
            reason = f"I/O error on listing the directory: {error.strerror}"
            raise KafkaStorageError(reason, self._directory, errno=error.errno) from error
        file_names = (find_segment_file_name(name) for name in names)
        return {
            each.base_offset
            for each in file_names
            if each is not None and (each.suffix, each.state) == (suffix, "")
        }

    @property
    def offsets(self) -> list[int]:
        """Offsets of all snapshots, ascending."""
        return sorted(self._offsets)

    @property
    def latest_offset(self) -> int | None:
        """Offset of the newest snapshot, None if there is none."""
        return max(self._offsets, default=None)

    def read(self, offset: int) -> list[ProducerSnapshotEntry]:
        """Return the entries of the snapshot at ``offset``; errors of `read_producer_snapshot`."""
        return read_producer_snapshot(self._path(offset))

    def write(self, offset: int, entries: Iterable[ProducerSnapshotEntry], *, sync: bool) -> str:
        """Write a snapshot and return its path; with ``sync``, it survives a power failure."""
        path = self._path(offset)
        write_producer_snapshot(self._io, path, entries, sync=sync)
        self._offsets.add(offset)
        return path

    def remove(self, offsets: Iterable[int]) -> None:
        """Delete the snapshots at ``offsets``; those that are gone already do not matter."""
        for offset in offsets:
            self._io.remove(self._path(offset), missing_ok=True)
            self._offsets.discard(offset)

    def remove_strays(self, segment_base_offsets: Collection[int]) -> None:
        """Delete every snapshot where no segment begins, but the one of a clean shutdown."""
        self.reload()
        strays = sorted(self._offsets - set(segment_base_offsets))
        if strays and strays[-1] >= max(segment_base_offsets, default=0):
            strays.pop()
        self.remove(strays)

    def mark_for_deletion(self, offset: int) -> str | None:
        """Append ``.deleted`` to a snapshot's name and forget it; return its path now."""
        if offset not in self._offsets:
            return None
        path = self._path(offset)
        marked = path + DELETED_FILE_SUFFIX
        try:
            self._io.replace(path, marked)
        except KafkaStorageError as error:
            if error.errno != errno.ENOENT:
                raise
            self._offsets.discard(offset)
            return None
        self._offsets.discard(offset)
        return marked

    def _path(self, offset: int) -> str:
        name = file_name_prefix(offset) + PRODUCER_SNAPSHOT_FILE_SUFFIX
        return os.path.join(self._directory, name)  # noqa: PTH118 - kept as text


class ProducerStateManager:
    """State of all producers of a partition, at `map_end_offset`.

    Not thread-safe: the lock of the log guards every call. The snapshots in the directory are
    known from the beginning; their content is not loaded before `truncate_and_reload`.
    """

    def __init__(
        self,
        topic_partition: TopicPartition,
        directory: str,
        *,
        io: DurableIO,
        producer_id_expiration_ms: int = 86_400_000,
        snapshots: ProducerSnapshots | None = None,
    ) -> None:
        self.topic_partition = topic_partition
        self._producer_id_expiration_ms = producer_id_expiration_ms
        self._producers: dict[int, ProducerStateEntry] = {}
        self._ongoing = TransactionsByFirstOffset()
        self._unreplicated = TransactionsByFirstOffset()
        # Those of another manager of this log, if given: a large directory is listed once.
        self._snapshots = snapshots or ProducerSnapshots(directory, io)
        self._warning_level = io.warning_level
        self._map_end_offset = 0
        self._last_snapshot_offset = 0

    @property
    def active_producers(self) -> Mapping[int, ProducerStateEntry]:
        """State by producer id; a view that follows every change."""
        return MappingProxyType(self._producers)

    @property
    def is_empty(self) -> bool:
        """Whether there is neither a producer nor a transaction above the high watermark."""
        return not self._producers and not self._unreplicated

    @property
    def map_end_offset(self) -> int:
        """The offset up to which, exclusively, the log has been taken into account."""
        return self._map_end_offset

    def update_map_end_offset(self, offset: int) -> None:
        """Note that the log has been taken into account up to ``offset``, exclusively."""
        self._map_end_offset = offset

    def last_entry(self, producer_id: int) -> ProducerStateEntry | None:
        """Return the state of a producer, None if it is unknown."""
        return self._producers.get(producer_id)

    def last_records(self) -> dict[int, LastRecord]:
        """Return what the log must not lose of each active producer, by producer id."""
        return {
            producer_id: LastRecord(
                entry.last_data_offset if entry.last_data_offset >= 0 else None,
                entry.producer_epoch,
            )
            for producer_id, entry in self._producers.items()
        }

    def prepare_update(self, producer_id: int, origin: AppendOrigin) -> ProducerAppendInfo:
        """Return what validates an append of ``producer_id``; changes nothing itself."""
        entry = self._producers.get(producer_id) or ProducerStateEntry(producer_id)
        return ProducerAppendInfo(self.topic_partition, entry, origin)

    def update(self, info: ProducerAppendInfo) -> None:
        """Take over what ``info`` has validated, after its batches have been appended."""
        if info.producer_id == NO_PRODUCER_ID:
            msg = f"producer id {info.producer_id} has no state in partition {self.topic_partition}"
            raise ValueError(msg)
        entry = self._producers.get(info.producer_id)
        if entry is None:
            self._producers[info.producer_id] = info.to_entry()
        else:
            entry.update(info.to_entry())
        for transaction in info.started_transactions:
            self._ongoing.put(transaction)

    def remove_expired_producers(self, now_ms: int) -> None:
        """Forget the producers that have been idle for too long."""
        expired = [each for each in self._producers.values() if self._is_expired(each, now_ms)]
        for entry in expired:
            del self._producers[entry.producer_id]

    def _is_expired(self, entry: ProducerStateEntry, now_ms: int) -> bool:
        is_idle = now_ms - entry.last_timestamp >= self._producer_id_expiration_ms
        return is_idle and entry.current_txn_first_offset is None

    @property
    def open_transactions(self) -> tuple[TxnMetadata, ...]:
        """Those without an end, in the order in which they began."""
        return tuple(self._ongoing)

    @property
    def first_undecided_offset(self) -> int | None:
        """Where the oldest open transaction begins, None if none is open."""
        first = self._ongoing.first
        return None if first is None else first.first_offset

    @property
    def unreplicated_first_offset(self) -> int | None:
        """Where the oldest completed transaction begins whose marker is not replicated yet."""
        first = self._unreplicated.first
        return None if first is None else first.first_offset

    @property
    def first_unstable_offset(self) -> int | None:
        """The smaller of `first_undecided_offset` and `unreplicated_first_offset`."""
        offsets = (self.first_undecided_offset, self.unreplicated_first_offset)
        return min((offset for offset in offsets if offset is not None), default=None)

    def last_stable_offset(self, completed: CompletedTransaction) -> int:
        """Return the last stable offset that ``completed`` leaves, for the transaction index."""
        others = (each for each in self._ongoing if each.producer_id != completed.producer_id)
        oldest = next(others, None)
        return completed.last_offset + 1 if oldest is None else oldest.first_offset

    def complete_transaction(self, completed: CompletedTransaction) -> None:
        """Let a transaction wait for the high watermark to pass its marker."""
        ongoing = self._ongoing.pop(completed.first_offset)
        if ongoing is None:
            reason = f"{completed} was not started in partition {self.topic_partition}"
            raise LogLoadingError(reason)
        self._unreplicated.put(ongoing._replace(last_offset=completed.last_offset))

    def on_high_watermark_updated(self, high_watermark: int) -> None:
        """Let go of the completed transactions whose markers are below ``high_watermark``."""
        self._unreplicated.remove_completed_before(high_watermark)

    def on_log_start_offset_incremented(self, log_start_offset: int) -> None:
        """Let go of the completed transactions below; producers stay, their batches gone or not."""
        self._unreplicated.remove_completed_before(log_start_offset)
        self._map_end_offset = max(self._map_end_offset, log_start_offset)
        latest = self._snapshots.latest_offset
        self._last_snapshot_offset = log_start_offset if latest is None else latest

    @property
    def latest_snapshot_offset(self) -> int | None:
        """Offset of the newest snapshot file, None if there is none."""
        return self._snapshots.latest_offset

    def take_snapshot(self, *, sync: bool = True) -> str | None:
        """Write a snapshot at `map_end_offset` and return its path; None if the last is as new."""
        if self._map_end_offset <= self._last_snapshot_offset:
            return None
        entries = [each.to_stored() for each in self._producers.values()]
        path = self._snapshots.write(self._map_end_offset, entries, sync=sync)
        self._last_snapshot_offset = self._map_end_offset
        _LOGGER.info(
            "wrote producer snapshot of %d producers to %s", len(entries), printable_location(path)
        )
        return path

    def truncate_and_reload(self, log_start_offset: int, log_end_offset: int, now_ms: int) -> None:
        """Go back to the newest snapshot in ``(log_start_offset, log_end_offset]``."""
        kept = range(log_start_offset + 1, log_end_offset + 1)
        self._snapshots.remove(each for each in self._snapshots.offsets if each not in kept)
        if log_end_offset == self._map_end_offset:
            self.on_log_start_offset_incremented(log_start_offset)
            return
        self._clear()
        self._map_end_offset = self._load_newest_snapshot(log_start_offset, now_ms)
        self._last_snapshot_offset = self._map_end_offset

    def _load_newest_snapshot(self, log_start_offset: int, now_ms: int) -> int:
        while (offset := self._snapshots.latest_offset) is not None:
            try:
                entries = self._snapshots.read(offset)
            except CorruptSnapshotError as error:
                _LOGGER.log(
                    self._warning_level,
                    "deleting a producer snapshot that cannot be read: %s",
                    error,
                )
                self._snapshots.remove([offset])
                continue
            for entry in map(ProducerStateEntry.from_stored, entries):
                if not self._is_expired(entry, now_ms):
                    self._load(entry)
            return offset
        return log_start_offset

    def _load(self, entry: ProducerStateEntry) -> None:
        self._producers[entry.producer_id] = entry
        if entry.current_txn_first_offset is not None:
            self._ongoing.put(TxnMetadata(entry.producer_id, entry.current_txn_first_offset))

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Forget everything, delete all snapshots, and go on at ``offset``."""
        self._clear()
        self._snapshots.remove(self._snapshots.offsets)
        self._last_snapshot_offset = 0
        self._map_end_offset = offset

    def _clear(self) -> None:
        self._producers.clear()
        self._ongoing.clear()
        # What is left of the log is below the high watermark.
        self._unreplicated.clear()

    def remove_stray_snapshots(self, segment_base_offsets: Collection[int]) -> None:
        """Read the directory again and delete snapshots that belong to no segment."""
        self._snapshots.remove_strays(segment_base_offsets)

    def remove_and_mark_snapshot_for_deletion(self, offset: int) -> str | None:
        """Rename the snapshot at ``offset`` to ``.deleted``; return its path now, None if gone."""
        return self._snapshots.mark_for_deletion(offset)


# Producers of one append: duplicates, sequences, transactions; nothing is changed yet.
#
# Source: UnifiedLog.analyzeAndValidateProducerState (Kafka 4.3; KIP-98, KIP-890).


class ProducerUpdates(NamedTuple):
    """What an append would change of the producers' state."""

    updates: dict[int, ProducerAppendInfo]
    completed: list[CompletedTransaction]
    duplicate: BatchMetadata | None = None


def end_transaction_marker_of(batch: memoryview) -> EndTransactionMarker | None:
    """Return the ABORT or COMMIT that a control batch holds, None for an empty or other one."""
    record = RecordBatch(batch).control_record()
    if record is None:
        return None
    kind = parse_control_record_type(record.key)
    if kind in (ControlRecordType.ABORT, ControlRecordType.COMMIT):
        return parse_end_transaction_marker(record.key, record.value)
    return None


def _ensure_epoch(manager: ProducerStateManager, header: BatchHeader) -> None:
    """Refuse a transactional batch of an old epoch, unless its transaction is open."""
    known = manager.last_entry(header.producer_id)
    if known is None or not header.is_transactional:
        return
    if header.producer_epoch < known.producer_epoch:
        reason = (
            f"producer epoch of producer {header.producer_id} is {header.producer_epoch}, "
            f"expected at least {known.producer_epoch}"
        )
        raise InvalidProducerEpochError(reason, str(manager.topic_partition))


def validate_producers(
    manager: ProducerStateManager,
    records: memoryview,
    batches: Sequence[PositionedHeader],
    origin: AppendOrigin,
    *,
    transaction_version: int = 0,
) -> ProducerUpdates:
    """Return what an append changes, each batch seen after the ones before it."""
    updates: dict[int, ProducerAppendInfo] = {}
    completed: list[CompletedTransaction] = []
    for batch in batches:
        header = batch.header
        if header.magic < MAGIC_VALUE_V2 or header.producer_id < 0:
            continue
        if origin is AppendOrigin.CLIENT:
            entry = manager.last_entry(header.producer_id)
            duplicate = None if entry is None else entry.find_duplicate_batch(header)
            if duplicate is not None:
                return ProducerUpdates({}, [], duplicate)
        if origin in (AppendOrigin.CLIENT, AppendOrigin.COORDINATOR):
            _ensure_epoch(manager, header)
        info = updates.get(header.producer_id)
        if info is None:
            info = updates[header.producer_id] = manager.prepare_update(header.producer_id, origin)
        marker = None
        if header.is_control_batch:
            marker = end_transaction_marker_of(records[batch.position : batch.end_position])
        done = info.append_batch(header, marker, transaction_version=transaction_version)
        if done is not None:
            completed.append(done)
    return ProducerUpdates(updates, completed)
