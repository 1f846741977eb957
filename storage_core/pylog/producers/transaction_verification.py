"""Which producers may begin a transaction in one partition; off unless it is asked for.

See `pylog.producers.verification_state_entry` for why. The steps of an append that is verified:
`TransactionVerification.maybe_start` before the coordinator is asked, `ensure_verified` before
the batch is validated, `clear` once a transactional batch or a marker is validated.

Source: UnifiedLog.maybeStartTransactionVerification, analyzeAndValidateProducerState,
ProducerStateManager (Kafka 4.3; KIP-890).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pylog.errors import InvalidProducerEpochError, InvalidTxnStateError
from pylog.producers.verification_state_entry import VerificationStateEntry

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pylog.model import TopicPartition
    from pylog.producers.producer_state_entry import ProducerStateEntry
    from pylog.producers.verification_state_entry import VerificationGuard
    from pylog.record.batch_header import BatchHeader
    from pylog.scheduling.clock import Clock


class TransactionVerification:
    """Verifications under way, at most one a producer. Guarded by the log's lock.

    Parameters
    ----------
    topic_partition
        Named in errors.
    producers
        State by producer id; read only, follows every change.
    clock
        When a verification began.
    is_enabled
        Whether a guard is asked for at all.
    """

    def __init__(
        self,
        topic_partition: TopicPartition,
        producers: Mapping[int, ProducerStateEntry],
        clock: Clock,
        *,
        is_enabled: bool,
    ) -> None:
        self.is_enabled = is_enabled
        self._partition = str(topic_partition)
        self._producers = producers
        self._clock = clock
        self._entries: dict[int, VerificationStateEntry] = {}

    def find(self, producer_id: int) -> VerificationStateEntry | None:
        """Return the verification under way for a producer, None if there is none."""
        return self._entries.get(producer_id)

    def maybe_start(
        self, producer_id: int, sequence: int, epoch: int, *, supports_epoch_bump: bool = False
    ) -> VerificationGuard | None:
        """Return the guard that the batch has to bring along; None if its transaction is open."""
        if self._has_ongoing_transaction(producer_id, epoch):
            return None
        entry = self._entries.get(producer_id)
        if entry is None:
            now_ms = self._clock.milliseconds()
            entry = VerificationStateEntry(now_ms, sequence, epoch, supports_epoch_bump)
            self._entries[producer_id] = entry
        entry.maybe_update_lowest_sequence_and_epoch(sequence, epoch)
        return entry.verification_guard

    def clear(self, producer_id: int) -> None:
        """End the verification, as every transactional batch and every marker does."""
        self._entries.pop(producer_id, None)

    def remove_begun_until(self, timestamp: int) -> None:
        """End the verifications that began at or before ``timestamp``."""
        self._entries = {
            producer_id: entry
            for producer_id, entry in self._entries.items()
            if entry.timestamp > timestamp
        }

    def ensure_verified(self, header: BatchHeader, guard: VerificationGuard | None) -> None:
        """Check that a batch of a client or coordinator may begin a transaction, if it begins one.

        Raises
        ------
        InvalidProducerEpochError
            The producer has a higher epoch already.
        InvalidTxnStateError
            Guards are asked for, and ``guard`` is not that of the verification under way.
        """
        is_ongoing = self._has_ongoing_transaction(header.producer_id, header.producer_epoch)
        if not header.is_transactional or is_ongoing:
            return
        self._ensure_epoch(header)
        if header.is_control_batch or not self.is_enabled:
            return
        entry = self._entries.get(header.producer_id)
        if guard is None or entry is None or guard is not entry.verification_guard:
            reason = f"batch of producer {header.producer_id} belongs to no verified transaction"
            raise InvalidTxnStateError(reason, self._partition)

    def _ensure_epoch(self, header: BatchHeader) -> None:
        known = self._producers.get(header.producer_id)
        if known is not None and header.producer_epoch < known.producer_epoch:
            reason = (
                f"producer epoch of producer {header.producer_id} is {header.producer_epoch}, "
                f"expected at least {known.producer_epoch}"
            )
            raise InvalidProducerEpochError(reason, self._partition)

    def _has_ongoing_transaction(self, producer_id: int, producer_epoch: int) -> bool:
        entry = self._producers.get(producer_id)
        return (
            entry is not None
            and entry.current_txn_first_offset is not None
            and entry.producer_epoch == producer_epoch
        )
