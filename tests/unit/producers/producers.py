"""Producers that append to a `ProducerStateManager` as a log does, batch by batch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pylog.files.durable_io import DurableIO
from pylog.model import AppendOrigin, ControlRecordType, TopicPartition
from pylog.producers.producer_state_manager import ProducerStateManager
from pylog.record.batch_header import BatchHeader
from pylog.record.control_record import EndTransactionMarker
from pylog.testing import ManualClock

if TYPE_CHECKING:
    from pylog.producers.producer_state_entry import ProducerStateEntry

ABORT, COMMIT = ControlRecordType.ABORT, ControlRecordType.COMMIT
CLIENT, COORDINATOR = AppendOrigin.CLIENT, AppendOrigin.COORDINATOR
REPLICATION = AppendOrigin.REPLICATION

PARTITION = TopicPartition("test", 0)
PRODUCER = 1
NOW_MS = 1_700_000_000_000
EXPIRATION_MS = 86_400_000
LARGEST_SEQUENCE = 2_147_483_647

TRANSACTIONAL_BIT, CONTROL_BIT = 0x10, 0x20


def data(
    offset: int,
    sequence: int,
    *,
    count: int = 1,
    producer_id: int = PRODUCER,
    epoch: int = 0,
    timestamp: int = NOW_MS,
    transactional: bool = False,
) -> BatchHeader:
    """Return the header of a data batch with ``count`` records from ``offset`` on."""
    return BatchHeader(
        offset=offset,
        size_bytes=61 + 10 * count,
        magic=2,
        crc=0,
        attributes=TRANSACTIONAL_BIT if transactional else 0,
        partition_leader_epoch=0,
        last_offset_delta=count - 1,
        base_timestamp=timestamp,
        max_timestamp=timestamp,
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
        record_count=count,
    )


def control(
    offset: int,
    *,
    producer_id: int = PRODUCER,
    epoch: int = 0,
    timestamp: int = NOW_MS,
    count: int = 1,
) -> BatchHeader:
    """Return the header of a control batch; one without records with ``count=0``."""
    return BatchHeader(
        offset=offset,
        size_bytes=78,
        magic=2,
        crc=0,
        attributes=TRANSACTIONAL_BIT | CONTROL_BIT,
        partition_leader_epoch=0,
        base_timestamp=timestamp,
        max_timestamp=timestamp,
        producer_id=producer_id,
        producer_epoch=epoch,
        record_count=count,
    )


class Partition:
    """A partition directory, a clock, and the manager of the producers there."""

    def __init__(self, directory: str, *, clock: ManualClock | None = None) -> None:
        self.directory = directory
        self.clock = ManualClock(NOW_MS) if clock is None else clock
        self.manager = ProducerStateManager(
            PARTITION,
            directory,
            io=DurableIO(),
            producer_id_expiration_ms=EXPIRATION_MS,
        )

    @property
    def now_ms(self) -> int:
        return self.clock.milliseconds()

    def append(self, header: BatchHeader, origin: AppendOrigin = CLIENT) -> None:
        """Append one data batch."""
        info = self.manager.prepare_update(header.producer_id, origin)
        assert info.append_batch(header, None) is None
        self.manager.update(info)
        self.manager.update_map_end_offset(header.next_offset)

    def append_marker(
        self,
        header: BatchHeader,
        control_type: ControlRecordType,
        *,
        coordinator_epoch: int = 0,
        transaction_version: int = 0,
        origin: AppendOrigin = COORDINATOR,
    ) -> None:
        """Append one marker and complete its transaction, if it had data."""
        info = self.manager.prepare_update(header.producer_id, origin)
        marker = EndTransactionMarker(control_type, coordinator_epoch)
        completed = info.append_batch(header, marker, transaction_version=transaction_version)
        self.manager.update(info)
        if completed is not None:
            self.manager.complete_transaction(completed)
        self.manager.update_map_end_offset(header.next_offset)

    def unstable_offsets(self) -> tuple[int | None, int | None, int | None]:
        """Return the first undecided, unreplicated and unstable offsets."""
        return (
            self.manager.first_undecided_offset,
            self.manager.unreplicated_first_offset,
            self.manager.first_unstable_offset,
        )

    def entry(self, producer_id: int = PRODUCER) -> ProducerStateEntry:
        """Return the state of a producer, which must be known."""
        entry = self.manager.last_entry(producer_id)
        assert entry is not None
        return entry

    def reopened(self, log_start_offset: int, log_end_offset: int, now_ms: int) -> Partition:
        """Return the same partition as a new process loads it."""
        other = Partition(self.directory, clock=self.clock)
        other.manager.truncate_and_reload(log_start_offset, log_end_offset, now_ms)
        return other
