"""A compacted log of its own for one test, which is filled, rolled and cleaned by hand."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, NamedTuple

from pylog.cleaner.cleanable_offsets import LogToClean
from pylog.cleaner.cleaner import Cleaner
from pylog.config import CleanerConfig, LogConfig
from pylog.model import AppendOrigin
from tests.support.batches import ABORT, COMMIT, Stored, batch_v2, marker
from tests.unit.log.owned_log import NOW_MS, OwnedLog, batches_in

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pylog.cleaner.cleaner import CleanerResult
    from pylog.cleaner.offset_map import OffsetMap
    from pylog.files.durable_io import DurableIO
    from pylog.model import TopicPartition
    from pylog.record.batch_header import BatchHeader
    from pylog.record.record_batch import RecordBatch

DELETE_RETENTION_MS = 1_000
COMPACT = LogConfig(
    cleanup_policy=frozenset({"compact"}),
    delete_retention_ms=DELETE_RETENTION_MS,
    index_interval_bytes=1 << 20,
)

__all__ = ["ABORT", "COMMIT", "DELETE_RETENTION_MS", "NOW_MS", "DirtyLog", "Left", "Producer"]


class Left(NamedTuple):
    """A batch that is in the log: the offsets of its header and those of its records."""

    base_offset: int
    last_offset: int
    records: list[int]


class DirtyLog(OwnedLog):
    """A log that follows its end; what it is cleaned with can be replaced."""

    def __init__(
        self,
        log_directory: Path,
        *,
        io: DurableIO | None = None,
        **properties: Any,  # noqa: ANN401 - fields of LogConfig
    ) -> None:
        config = dataclasses.replace(COMPACT, **properties)
        super().__init__(log_directory, config, io=io)
        self.log.follows_end = True
        self.first_dirty_offset = 0
        self.map: OffsetMap | None = None
        self.check_done: Callable[[TopicPartition], object] = lambda _: None

    def put(
        self,
        *pairs: tuple[bytes | None, bytes | None],
        codec: str = "none",
        timestamp: int = NOW_MS,
        append_time: int | None = None,
    ) -> int:
        """Append a batch of keys with values; return its first offset."""
        records = [Stored(place, timestamp, *pair) for place, pair in enumerate(pairs)]
        data = batch_v2(records, codec=codec).data
        return self.log.append_as_leader(data).first_offset

    def copy(self, data: bytes) -> None:
        """Append batches that have their offsets."""
        self.log.append_as_follower(data)

    def clean(self, *, end: int | None = None, now_ms: int | None = None) -> CleanerResult:
        """Clean up to the active segment, or to ``end``; the next time goes on from there."""
        cleaner = Cleaner(
            CleanerConfig(), self.clock, offset_map=self.map, check_done=self.check_done
        )
        active = self.log.local_log.segments.active_segment.base_offset
        to_clean = LogToClean(self.log, self.first_dirty_offset, active if end is None else end)
        result = cleaner.clean(to_clean, now_ms)
        self.first_dirty_offset = result.next_dirty_offset
        return result

    def roll_and_clean(self, *, now_ms: int | None = None) -> CleanerResult:
        """Clean all that there is."""
        self.log.roll()
        return self.clean(now_ms=now_ms)

    @property
    def batches(self) -> list[RecordBatch]:
        """All batches of all segments."""
        return [
            batch
            for segment in self.log.segments
            for batch in batches_in(segment.log.read_at(0, segment.size_bytes))
        ]

    @property
    def headers(self) -> list[BatchHeader]:
        """Theirs."""
        return [batch.header for batch in self.batches]

    @property
    def left(self) -> list[Left]:
        """What is in the log, by batch."""
        return [
            Left(
                batch.header.base_offset or 0,
                batch.header.last_offset,
                [record.offset for record in batch.records()],
            )
            for batch in self.batches
        ]

    @property
    def offsets(self) -> list[int]:
        """The offsets of all records, control records included."""
        return [offset for left in self.left for offset in left.records]

    @property
    def pairs(self) -> list[tuple[bytes | None, bytes | None]]:
        """Keys and values of all records, but for control records."""
        return [
            (record.key, record.value)
            for batch in self.batches
            if not batch.header.is_control_batch
            for record in batch.records()
        ]

    @property
    def files(self) -> dict[str, bytes]:
        """Content by name; without files that wait to be removed."""
        return {
            path.name: path.read_bytes()
            for path in sorted(self.directory.iterdir())
            if path.suffix != ".deleted"
        }

    def reopen_without_looking(self) -> None:
        """Open the log again as after a clean shutdown: no segment is recovered."""
        self.log.close()
        end = self.log.log_end_offset
        self.open(recovery_point=end)
        self.log.follows_end = True
        self.log.update_high_watermark(end)

    def reopen_from_batches(self) -> None:
        """Open the log again after a crash that left no producer snapshot."""
        self.log.close()
        for path in self.directory.glob("*.snapshot"):
            path.unlink()
        self.open(is_clean=False)
        self.log.follows_end = True
        self.log.update_high_watermark(self.log.log_end_offset)


class Producer:
    """An idempotent or transactional producer, and its coordinator."""

    def __init__(
        self, dirty: DirtyLog, producer_id: int, epoch: int = 0, *, is_transactional: bool = True
    ) -> None:
        self._dirty = dirty
        self._is_transactional = is_transactional
        self.producer_id = producer_id
        self.epoch = epoch
        self.sequence = 0

    def put(self, *keys: bytes, value: bytes | None = b"v") -> int:
        """Append a batch of records with these keys; return its first offset."""
        records = [Stored(place, NOW_MS, key, value) for place, key in enumerate(keys)]
        data = batch_v2(
            records,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            base_sequence=self.sequence,
            is_transactional=self._is_transactional,
        ).data
        self.sequence += len(keys)
        return self._dirty.log.append_as_leader(data).first_offset

    def end(self, control_type: int) -> int:
        """Append the marker that ends the transaction; return its offset."""
        data = marker(
            0,
            control_type,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            timestamp=NOW_MS,
        ).data
        log = self._dirty.log
        return log.append_as_leader(data, origin=AppendOrigin.COORDINATOR).first_offset
