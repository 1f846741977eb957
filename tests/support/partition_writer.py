"""Writes a partition through ``pylog`` and enters it into an account."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pylog.model import AppendOrigin, CompressionType, ControlRecordType
from pylog.record.record_batch_builder import RecordBatchBuilder
from tests.support.batches import LOG_APPEND_TIME, marker
from tests.support.partition_account import record_at

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pylog.log.unified_log import UnifiedLog
    from pylog.testing import ManualClock
    from tests.support.batches import Stored
    from tests.support.partition_account import PartitionAccount, Producer

_FIRST_LEADER_EPOCH = 0  # no broker gave one
_COORDINATOR_EPOCH = 3


class PartitionWriter:
    """Appends to a log, at offsets it counts itself: another one given by the log is an error.

    Parameters
    ----------
    log
        Where to.
    clock
        Of the log's manager.
    account
        Of what is there, also by others.
    is_append_time
        Whether the topic's records get the time of the append.
    """

    def __init__(
        self,
        log: UnifiedLog,
        clock: ManualClock,
        account: PartitionAccount,
        *,
        is_append_time: bool = False,
    ) -> None:
        self.log = log
        self.clock = clock
        self.account = account
        self._is_append_time = is_append_time

    def records(
        self, count: int, *, first_timestamp: int | None = None, size: int = 40
    ) -> list[Stored]:
        """Return records for the next offsets, a millisecond apart, up to now by default."""
        first = first_timestamp
        if first is None:
            first = self.clock.milliseconds() - count + 1
        start = self.account.log_end_offset
        return [record_at(start + each, first + each, size=size) for each in range(count)]

    def append(
        self,
        records: Sequence[Stored],
        *,
        compression: CompressionType = CompressionType.NONE,
        producer: Producer | None = None,
        is_transactional: bool = False,
    ) -> None:
        """Append one batch at the end, as the leader does that a producer sends it to."""
        builder = RecordBatchBuilder(compression=compression)
        if producer is not None:
            builder = RecordBatchBuilder(
                compression=compression,
                producer_id=producer.producer_id,
                producer_epoch=producer.epoch,
                base_sequence=producer.next_sequence,
                is_transactional=is_transactional,
            )
        for each in records:
            builder.append(each.timestamp, each.key, each.value, _headers(each))
        self._append_as_leader(builder.build(), AppendOrigin.CLIENT)
        if self._is_append_time:
            now = self.clock.milliseconds()
            records = [
                each._replace(timestamp=now, timestamp_type=LOG_APPEND_TIME) for each in records
            ]
        self.account.enter(records, producer)
        if producer is not None and is_transactional:
            producer.open_offsets += [each.offset for each in records]

    def append_at(self, records: Sequence[Stored]) -> None:
        """Append one batch at the records' own offsets, as a follower of another leader does."""
        builder = RecordBatchBuilder(
            base_offset=records[0].offset, partition_leader_epoch=self._leader_epoch
        )
        for each in records:
            builder.append_with_offset(
                each.offset, each.timestamp, each.key, each.value, _headers(each)
            )
        self.log.append_as_follower(builder.build(), self._leader_epoch)
        self.account.enter(records)

    def end_transaction(self, producer: Producer, *, is_commit: bool) -> None:
        """Append the marker that decides the producer's transaction."""
        kind = ControlRecordType.COMMIT if is_commit else ControlRecordType.ABORT
        now = self.clock.milliseconds()
        batch = marker(
            0,
            kind,
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            coordinator_epoch=_COORDINATOR_EPOCH,
            timestamp=now,
        )
        self._append_as_leader(batch.data, AppendOrigin.COORDINATOR)
        self.account.enter_marker(producer, now, is_commit=is_commit)

    def delete_records(self, offset: int) -> None:
        """Move the log start."""
        assert self.log.delete_records(offset) == offset
        self.account.log_start_offset = offset

    def truncate_to(self, offset: int, *, batch_start: int) -> None:
        """Cut the log at ``offset``; the batch that holds it, and begins before it, goes, too."""
        assert self.log.truncate_to(offset)
        self.account.cut(offset, batch_start)

    @property
    def _leader_epoch(self) -> int:
        latest = self.log.latest_epoch
        return _FIRST_LEADER_EPOCH if latest is None else latest

    def _append_as_leader(self, batch: bytes, origin: AppendOrigin) -> None:
        info = self.log.append_as_leader(batch, self._leader_epoch, origin=origin)
        assert info.first_offset == self.account.log_end_offset, self.account.topic


def _headers(record: Stored) -> list[tuple[str, bytes | None]]:
    return list(record.headers)
