"""Validation of one producer's batches before they are appended, and the state after them.

Source: ProducerAppendInfo (Kafka 4.3; KIP-98, KIP-360, KIP-890).
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, NamedTuple

from pylog.errors import (
    InvalidProducerEpochError,
    InvalidTxnStateError,
    OutOfOrderSequenceError,
    TransactionCoordinatorFencedError,
)
from pylog.model import NO_PRODUCER_EPOCH, NO_SEQUENCE, AppendOrigin, ControlRecordType
from pylog.producers.producer_state_entry import (
    BatchMetadata,
    CompletedTransaction,
    ProducerStateEntry,
    TxnMetadata,
)
from pylog.producers.sequence_number import is_next_sequence, last_sequence_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pylog.model import TopicPartition
    from pylog.record.batch_header import BatchHeader
    from pylog.record.control_record import EndTransactionMarker

_LOGGER = logging.getLogger(__name__)

MAX_PRODUCER_EPOCH = 2**15 - 1
TRANSACTION_VERSION_2 = 2


class _Checks(NamedTuple):
    """Which checks an append undergoes, beside that of data within an open transaction.

    Attributes
    ----------
    refuses_old_epochs
        Whether an epoch of the producer, or of the coordinator in a marker, that is below the known
        one is an error; otherwise it is logged and taken.
    sequences
        Whether the sequence number follows the last one.
    """

    refuses_old_epochs: bool
    sequences: bool


_CHECKS: Mapping[AppendOrigin, _Checks] = {
    AppendOrigin.CLIENT: _Checks(refuses_old_epochs=True, sequences=True),
    AppendOrigin.COORDINATOR: _Checks(refuses_old_epochs=True, sequences=False),
    AppendOrigin.RAFT_LEADER: _Checks(refuses_old_epochs=True, sequences=False),
    AppendOrigin.REPLICATION: _Checks(refuses_old_epochs=False, sequences=False),
}


class ProducerAppendInfo:
    """What an append of one producer would make of its state.

    Begins with the state after the last successful append and goes on batch by batch, each
    checked against the one before it. ``current_entry`` is never changed: nothing counts until
    `ProducerStateManager.update` is given this object, which is then used up.
    """

    def __init__(
        self,
        topic_partition: TopicPartition,
        current_entry: ProducerStateEntry,
        origin: AppendOrigin,
    ) -> None:
        self.topic_partition = topic_partition
        self.producer_id = current_entry.producer_id
        self._checks = _CHECKS[origin]
        self._current = current_entry
        self._updated = current_entry.without_batches()
        self._started_transactions: list[TxnMetadata] = []

    @property
    def started_transactions(self) -> tuple[TxnMetadata, ...]:
        """Transactions that began in this append, in order."""
        return tuple(self._started_transactions)

    def to_entry(self) -> ProducerStateEntry:
        """Return the state after the append; it remembers only the batches of this append."""
        return self._updated

    def append_batch(
        self,
        header: BatchHeader,
        marker: EndTransactionMarker | None,
        *,
        transaction_version: int = 0,
    ) -> CompletedTransaction | None:
        """Add a batch; return the transaction that it ends, if it ends one with data in it."""
        if not header.is_control_batch:
            self._append_data_batch(header)
            return None
        return None if marker is None else self._append_marker(header, marker, transaction_version)

    def _append_data_batch(self, header: BatchHeader) -> None:
        self._check_producer_epoch(header, 0)
        if self._checks.sequences:
            self._check_sequence(header)
        entry = self._updated
        if entry.current_txn_first_offset is not None and not header.is_transactional:
            msg = (
                f"expected a transactional batch from {self._place(header)}: its transaction "
                f"that began at offset {entry.current_txn_first_offset} is open"
            )
            raise InvalidTxnStateError(msg, self._partition)
        entry.add_batch(
            header.producer_epoch,
            BatchMetadata(
                last_sequence_of(header),
                header.last_offset,
                header.last_offset_delta,
                header.max_timestamp,
            ),
        )
        if entry.current_txn_first_offset is None and header.is_transactional:
            entry.current_txn_first_offset = header.offset
            self._started_transactions.append(TxnMetadata(self.producer_id, header.offset))

    def _append_marker(
        self, header: BatchHeader, marker: EndTransactionMarker, transaction_version: int
    ) -> CompletedTransaction | None:
        self._check_producer_epoch(header, transaction_version)
        self._check_coordinator_epoch(header, marker)
        entry = self._updated
        first_offset = entry.current_txn_first_offset
        entry.update_producer_epoch(header.producer_epoch)
        entry.coordinator_epoch = marker.coordinator_epoch
        # A marker is alone in its batch, whose largest timestamp is therefore its own.
        entry.last_timestamp = header.max_timestamp
        entry.current_txn_first_offset = None
        if first_offset is None:
            return None
        is_aborted = marker.control_type is ControlRecordType.ABORT
        return CompletedTransaction(self.producer_id, first_offset, header.offset, is_aborted)

    def _check_producer_epoch(self, header: BatchHeader, transaction_version: int) -> None:
        epoch, known = header.producer_epoch, self._updated.producer_epoch
        if epoch > known or (epoch == known and self._may_repeat_epoch(epoch, transaction_version)):
            return
        expected = f"at least {known}" if epoch < known else f"more than {known}"
        msg = (
            f"producer epoch of {self._place(header)} is {epoch}, expected {expected} "
            f"(transaction version {transaction_version})"
        )
        if self._checks.refuses_old_epochs:
            raise InvalidProducerEpochError(msg, self._partition)
        _LOGGER.warning("%s in partition %s; taken, as it is replicated", msg, self._partition)

    def _may_repeat_epoch(self, epoch: int, transaction_version: int) -> bool:
        # Coordinators of version 2 raise the epoch before they write a marker. The same epoch is
        # a second try of a marker that was written, or an epoch that cannot rise any more.
        return (
            transaction_version < TRANSACTION_VERSION_2
            or self._updated.current_txn_first_offset is None
            or epoch == MAX_PRODUCER_EPOCH
        )

    def _check_coordinator_epoch(self, header: BatchHeader, marker: EndTransactionMarker) -> None:
        known = self._updated.coordinator_epoch
        if marker.coordinator_epoch >= known:
            return
        msg = (
            f"coordinator epoch of a marker for {self._place(header)} is "
            f"{marker.coordinator_epoch}, expected at least {known}"
        )
        if self._checks.refuses_old_epochs:
            raise TransactionCoordinatorFencedError(msg, self._partition)
        _LOGGER.info("%s in partition %s; taken, as it is replicated", msg, self._partition)

    def _check_sequence(self, header: BatchHeader) -> None:
        first_sequence = header.base_sequence
        if header.producer_epoch != self._updated.producer_epoch:
            is_known = self._updated.producer_epoch != NO_PRODUCER_EPOCH
            if first_sequence != 0 and is_known:
                expected = f"0 in a new epoch, {header.producer_epoch}"
                raise self._out_of_order(header, expected)
            return
        # Retention may have removed all that a producer wrote: then any sequence is right.
        if self._current.producer_epoch == NO_PRODUCER_EPOCH:
            return
        last_sequence = self._last_sequence(header.producer_epoch)
        if not is_next_sequence(last_sequence, first_sequence):
            raise self._out_of_order(header, f"the one after {last_sequence}")

    def _last_sequence(self, producer_epoch: int) -> int:
        if not self._updated.is_empty:
            return self._updated.last_sequence
        if producer_epoch == self._current.producer_epoch:
            return self._current.last_sequence
        return NO_SEQUENCE

    def _out_of_order(self, header: BatchHeader, expected: str) -> OutOfOrderSequenceError:
        msg = (
            f"first sequence of {self._place(header)} is {header.base_sequence}, "
            f"expected {expected}"
        )
        return OutOfOrderSequenceError(msg, self._partition)

    def _place(self, header: BatchHeader) -> str:
        return f"producer {self.producer_id} at offset {header.offset}"

    @property
    def _partition(self) -> str:
        return str(self.topic_partition)
