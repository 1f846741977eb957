"""Producers of one append: duplicates, sequences, transactions; nothing is changed yet.

Source: UnifiedLog.analyzeAndValidateProducerState (Kafka 4.3; KIP-98, KIP-890).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pylog.model import AppendOrigin, ControlRecordType
from pylog.record.batch_layout import MAGIC_VALUE_V2
from pylog.record.control_record import (
    EndTransactionMarker,
    parse_control_record_type,
    parse_end_transaction_marker,
)
from pylog.record.record_batch import RecordBatch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pylog.log_file.batch_walk import PositionedHeader
    from pylog.producers.completed_transaction import CompletedTransaction
    from pylog.producers.producer_append_info import ProducerAppendInfo
    from pylog.producers.producer_state_entry import BatchMetadata
    from pylog.producers.producer_state_manager import ProducerStateManager


class ProducerUpdates(NamedTuple):
    """What an append would change of the producers' state.

    ``duplicate`` is the batch that was appended before, if the append repeats one.
    """

    updates: dict[int, ProducerAppendInfo]
    completed: list[CompletedTransaction]
    duplicate: BatchMetadata | None = None


def end_transaction_marker_of(batch: memoryview) -> EndTransactionMarker | None:
    """Return the ABORT or COMMIT that a control batch holds, None for an empty or other one.

    Raises
    ------
    InvalidRecordError
        The control record breaks its format.
    """
    record = RecordBatch(batch).control_record()
    if record is None:
        return None
    kind = parse_control_record_type(record.key)
    if kind in (ControlRecordType.ABORT, ControlRecordType.COMMIT):
        return parse_end_transaction_marker(record.key, record.value)
    return None


def validate_producers(
    manager: ProducerStateManager,
    records: memoryview,
    batches: Sequence[PositionedHeader],
    origin: AppendOrigin,
    *,
    transaction_version: int = 0,
) -> ProducerUpdates:
    """Return what an append changes, each batch seen after the ones before it.

    Raises
    ------
    OutOfOrderSequenceError, InvalidProducerEpochError, InvalidTxnStateError
        A producer may not append this.
    TransactionCoordinatorFencedError
        A marker comes from a coordinator that has been replaced.
    """
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
            manager.transaction_verification.ensure_verified(header, None)
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
