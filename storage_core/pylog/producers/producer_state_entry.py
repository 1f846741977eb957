"""What a log remembers of one producer: epoch, newest batches, open transaction.

Of the producer's current epoch the five newest batches are kept, so that any of the (at most
five) requests a producer has in flight is recognised when it is repeated. A snapshot file keeps
only the newest one.

Source: ProducerStateEntry, BatchMetadata (Kafka 4.3; KIP-98, KIP-360).
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from pylog.files.producer_snapshot import NO_OFFSET, ProducerSnapshotEntry
from pylog.model import NO_PRODUCER_EPOCH, NO_SEQUENCE, NO_TIMESTAMP
from pylog.producers.sequence_number import decrement_sequence, last_sequence_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pylog.record.batch_header import BatchHeader


NUM_BATCHES_TO_RETAIN = 5
NO_COORDINATOR_EPOCH = -1


class LastRecord(NamedTuple):
    """What a log must not lose of an active producer: its last data offset and its epoch.

    Source: LastRecord (Kafka 4.3).
    """

    data_offset: int | None
    producer_epoch: int


class BatchMetadata(NamedTuple):
    """One batch of a producer, as far as its repetition is recognised by it."""

    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int

    @property
    def first_sequence(self) -> int:
        """Sequence number of the first record."""
        return decrement_sequence(self.last_sequence, self.offset_delta)

    @property
    def first_offset(self) -> int:
        """Offset of the first record."""
        return self.last_offset - self.offset_delta


def _no_batches() -> deque[BatchMetadata]:
    return deque(maxlen=NUM_BATCHES_TO_RETAIN)


@dataclass(slots=True)
class ProducerStateEntry:
    """State of one producer id; changes in place.

    All of ``batch_metadata`` belongs to ``producer_epoch``, oldest first; a sixth batch pushes
    the oldest out. Not thread-safe: the lock of the log guards it.
    """

    producer_id: int
    producer_epoch: int = NO_PRODUCER_EPOCH
    coordinator_epoch: int = NO_COORDINATOR_EPOCH
    last_timestamp: int = NO_TIMESTAMP
    current_txn_first_offset: int | None = None
    batch_metadata: deque[BatchMetadata] = field(default_factory=_no_batches)

    @classmethod
    def from_stored(cls, stored: ProducerSnapshotEntry) -> ProducerStateEntry:
        """Return the state that an entry of a snapshot file holds."""
        first_offset = stored.current_txn_first_offset
        entry = cls(
            producer_id=stored.producer_id,
            producer_epoch=stored.producer_epoch,
            coordinator_epoch=stored.coordinator_epoch,
            last_timestamp=stored.timestamp,
            current_txn_first_offset=first_offset if first_offset >= 0 else None,
        )
        if stored.last_offset >= 0:
            entry.batch_metadata.append(
                BatchMetadata(
                    stored.last_sequence, stored.last_offset, stored.offset_delta, stored.timestamp
                )
            )
        return entry

    def to_stored(self) -> ProducerSnapshotEntry:
        """Return the entry that a snapshot file has of this state."""
        first_offset = self.current_txn_first_offset
        return ProducerSnapshotEntry(
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            last_sequence=self.last_sequence,
            last_offset=self.last_data_offset,
            offset_delta=self.last_offset_delta,
            timestamp=self.last_timestamp,
            coordinator_epoch=self.coordinator_epoch,
            current_txn_first_offset=NO_OFFSET if first_offset is None else first_offset,
        )

    def without_batches(self) -> ProducerStateEntry:
        """Return a copy that remembers no batch."""
        return ProducerStateEntry(
            self.producer_id,
            self.producer_epoch,
            self.coordinator_epoch,
            self.last_timestamp,
            self.current_txn_first_offset,
        )

    @property
    def is_empty(self) -> bool:
        """Whether no batch of the current epoch is remembered."""
        return not self.batch_metadata

    @property
    def first_sequence(self) -> int:
        """First sequence number of the oldest batch remembered, or `NO_SEQUENCE`."""
        return self.batch_metadata[0].first_sequence if self.batch_metadata else NO_SEQUENCE

    @property
    def last_sequence(self) -> int:
        """Last sequence number of the newest batch, or `NO_SEQUENCE`."""
        return self.batch_metadata[-1].last_sequence if self.batch_metadata else NO_SEQUENCE

    @property
    def first_data_offset(self) -> int:
        """First offset of the oldest batch remembered, or `NO_OFFSET`."""
        return self.batch_metadata[0].first_offset if self.batch_metadata else NO_OFFSET

    @property
    def last_data_offset(self) -> int:
        """Last offset of the newest batch, or `NO_OFFSET`; never that of a marker."""
        return self.batch_metadata[-1].last_offset if self.batch_metadata else NO_OFFSET

    @property
    def last_offset_delta(self) -> int:
        """Last offset minus first offset of the newest batch, or 0."""
        return self.batch_metadata[-1].offset_delta if self.batch_metadata else 0

    def add_batch(self, producer_epoch: int, batch: BatchMetadata) -> None:
        """Remember ``batch`` as the newest; a new epoch makes the older ones forgotten."""
        self.update_producer_epoch(producer_epoch)
        self.batch_metadata.append(batch)
        self.last_timestamp = batch.timestamp

    def update_producer_epoch(self, producer_epoch: int) -> None:
        """Set the epoch; if it differs from the one before, no batch is remembered any more."""
        if producer_epoch != self.producer_epoch:
            self.batch_metadata.clear()
            self.producer_epoch = producer_epoch

    def update(self, newer: ProducerStateEntry) -> None:
        """Take over the state ``newer``, which holds only batches that are not yet here."""
        self.update_producer_epoch(newer.producer_epoch)
        self.batch_metadata.extend(newer.batch_metadata)
        self.coordinator_epoch = newer.coordinator_epoch
        self.last_timestamp = newer.last_timestamp
        self.current_txn_first_offset = newer.current_txn_first_offset

    def find_duplicate_batch(self, header: BatchHeader) -> BatchMetadata | None:
        """Return the remembered batch that ``header`` repeats, if any.

        Both must be of the current epoch and span exactly the same sequence numbers.
        """
        if header.producer_epoch != self.producer_epoch:
            return None
        sequences = (header.base_sequence, last_sequence_of(header))
        for batch in self.batch_metadata:
            if sequences == (batch.first_sequence, batch.last_sequence):
                return batch
        return None


class CompletedTransaction(NamedTuple):
    """Offsets and outcome of a transaction that wrote data here (Kafka: CompletedTxn)."""

    producer_id: int
    first_offset: int
    last_offset: int
    is_aborted: bool


class TxnMetadata(NamedTuple):
    """Where a transaction begins and, once it has a marker, where that is (Kafka: TxnMetadata)."""

    producer_id: int
    first_offset: int
    last_offset: int | None = None


def _first_offset(transaction: TxnMetadata) -> int:
    return transaction.first_offset


class TransactionsByFirstOffset:
    """Transactions, each at its first offset, which no other one has; iterates in that order.

    Transactions begin in the order of their offsets, so adding one is almost always an append.
    Guarded by the log's lock.
    """

    def __init__(self) -> None:
        self._transactions: list[TxnMetadata] = []

    def __len__(self) -> int:
        return len(self._transactions)

    def __iter__(self) -> Iterator[TxnMetadata]:
        return iter(self._transactions)

    @property
    def first(self) -> TxnMetadata | None:
        """The one that began first, None if there is none."""
        return self._transactions[0] if self._transactions else None

    def put(self, transaction: TxnMetadata) -> None:
        """Add a transaction, in the place of the one that began at the same offset."""
        at = self._slot(transaction.first_offset)
        if self._is_at(at, transaction.first_offset):
            self._transactions[at] = transaction
        else:
            self._transactions.insert(at, transaction)

    def pop(self, first_offset: int) -> TxnMetadata | None:
        """Remove and return the transaction that began at ``first_offset``, if there is one."""
        at = self._slot(first_offset)
        return self._transactions.pop(at) if self._is_at(at, first_offset) else None

    def remove_completed_before(self, offset: int) -> None:
        """Remove every transaction whose marker is below ``offset``."""
        self._transactions = [
            each
            for each in self._transactions
            if each.last_offset is None or each.last_offset >= offset
        ]

    def clear(self) -> None:
        """Remove all."""
        self._transactions.clear()

    def _slot(self, first_offset: int) -> int:
        return bisect_left(self._transactions, first_offset, key=_first_offset)

    def _is_at(self, at: int, first_offset: int) -> bool:
        return at < len(self) and self._transactions[at].first_offset == first_offset
