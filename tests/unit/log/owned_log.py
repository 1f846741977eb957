"""A log of its own for one test: small, on a clock that stands still, and easy to fill."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from pylog.config import LogConfig, LogManagerConfig
from pylog.files.durable_io import DurableIO
from pylog.log.log_context import LogContext
from pylog.log.log_loader import LogLoading, load_log
from pylog.log.log_segment import FetchIsolation
from pylog.model import AppendOrigin
from pylog.record.record_batch import RecordBatch
from pylog.testing import ManualClock, ManualScheduler
from pylog.validation.log_append_info import batches_of
from tests.support.batches import Stored, batch_v2, marker, message, wrapper

if TYPE_CHECKING:
    from pathlib import Path

    from pylog.log.log_segment import FetchDataInfo
    from pylog.log.unified_log import UnifiedLog
    from pylog.record.record import Record
    from pylog.validation.log_append_info import LogAppendInfo

NOW_MS = 1_700_000_000_000
NO_TIMESTAMP = -1
ABORT, COMMIT = 0, 1
LOG_END = FetchIsolation.LOG_END
HIGH_WATERMARK = FetchIsolation.HIGH_WATERMARK
TXN_COMMITTED = FetchIsolation.TXN_COMMITTED
LARGEST_LENGTH = 2**31 - 1


class OwnedLog:
    """A partition directory and the log in it, whose high watermark is moved by hand.

    ``log_directory`` must exist; the partition directory is made.
    """

    def __init__(
        self, log_directory: Path, config: LogConfig | None = None, *, io: DurableIO | None = None
    ) -> None:
        self.directory = log_directory / "topic-0"
        self.directory.mkdir(exist_ok=True)
        self.config = LogConfig() if config is None else config
        self.clock = ManualClock(NOW_MS)
        self.scheduler = ManualScheduler(self.clock)
        self._io = DurableIO() if io is None else io
        self.log = self.open()

    def open(
        self,
        *,
        is_clean: bool = True,
        recovery_point: int = 0,
        log_start_offset: int = 0,
        producer_id_expiration_ms: int = 86_400_000,
    ) -> UnifiedLog:
        """Load the log from its directory, as a new process does; it becomes `log`."""
        context = LogContext(
            io=self._io, clock=self.clock, scheduler=self.scheduler, random=random.Random(1)
        )
        loading = LogLoading(
            directory=str(self.directory),
            config=self.config,
            manager_config=LogManagerConfig(producer_id_expiration_ms=producer_id_expiration_ms),
            context=context,
            had_clean_shutdown=is_clean,
            recovery_point_checkpoint=recovery_point,
            log_start_offset_checkpoint=log_start_offset,
        )
        self.log = load_log(loading)
        self.log.follows_end = False
        return self.log

    def append(self, *values: bytes | None, leader_epoch: int = 0) -> LogAppendInfo:
        """Append records without key, stamped with the clock's time, as leader."""
        data = one_batch(*values, timestamp=self.clock.milliseconds())
        return self.log.append_as_leader(data, leader_epoch)

    def append_numbers(self, count: int) -> None:
        """Append ``count`` batches of one record each."""
        for number in range(count):
            self.append(str(number).encode())

    def raise_high_watermark(self) -> None:
        """Move the high watermark to the end."""
        self.log.update_high_watermark(self.log.log_end_offset)

    def read(
        self, start_offset: int, max_length: int, *, min_one_message: bool = True
    ) -> FetchDataInfo:
        """Read up to the log's end."""
        return self.log.read(start_offset, max_length, LOG_END, min_one_message=min_one_message)

    def first_read(self, start_offset: int, max_length: int = 4096) -> Record:
        """Return the first record that a read gives."""
        return records_in(self.read(start_offset, max_length).records)[0]

    def first_unstable_offset(self) -> int | None:
        """Return that of the log."""
        return self.log.first_unstable_offset

    def latest_snapshot_offset(self) -> int | None:
        """Return that of the newest producer snapshot."""
        return self.log.producer_state.latest_snapshot_offset

    @property
    def base_offsets(self) -> list[int]:
        """Of all segments."""
        return [segment.base_offset for segment in self.log.segments]

    @property
    def snapshot_offsets(self) -> list[int]:
        """Of the producer snapshots in the directory."""
        return sorted(int(path.stem) for path in self.directory.glob("*.snapshot"))

    def aborted(self) -> list[tuple[int, int, int, int]]:
        """Return producer, first, last and last stable offset of all aborted transactions."""
        return [
            (entry.producer_id, entry.first_offset, entry.last_offset, entry.last_stable_offset)
            for segment in self.log.segments
            for entry in segment.transaction_index.entries()
        ]

    def all_records(self) -> list[Record]:
        """Return every record in the files."""
        return [
            record
            for segment in self.log.segments
            for record in records_in(segment.log.read_at(0, segment.size_bytes))
        ]


class Transactional:
    """A transactional producer and its coordinator, who append to one log."""

    def __init__(self, owned: OwnedLog, producer_id: int, epoch: int = 0) -> None:
        self._owned = owned
        self.producer_id = producer_id
        self.epoch = epoch
        self._sequence = 0

    def append(self, count: int) -> LogAppendInfo:
        """Append one batch of ``count`` records to the open transaction."""
        data = one_batch(
            *[b"%d" % number for number in range(count)],
            timestamp=self._owned.clock.milliseconds(),
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            base_sequence=self._sequence,
            is_transactional=True,
        )
        self._sequence += count
        return self._owned.log.append_as_leader(data)

    def end(
        self, control_type: int, *, coordinator_epoch: int = 0, leader_epoch: int = 0
    ) -> LogAppendInfo:
        """Append the marker that ends the transaction."""
        built = marker(
            0,
            control_type,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            timestamp=self._owned.clock.milliseconds(),
            coordinator_epoch=coordinator_epoch,
        )
        return self._owned.log.append_as_leader(
            built.data, leader_epoch, origin=AppendOrigin.COORDINATOR
        )


def one_batch(
    *values: bytes | None,
    key: bytes | None = None,
    base_offset: int = 0,
    timestamp: int = NOW_MS,
    codec: str = "none",
    leader_epoch: int = 0,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    is_transactional: bool = False,
) -> bytes:
    """Return one v2 batch whose records differ in nothing but value and offset."""
    return batch_v2(
        stored(*values, key=key, base_offset=base_offset, timestamp=timestamp),
        codec=codec,
        leader_epoch=leader_epoch,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        is_transactional=is_transactional,
    ).data


def stored(
    *values: bytes | None,
    key: bytes | None = None,
    base_offset: int = 0,
    timestamp: int = NOW_MS,
) -> list[Stored]:
    """Return records at consecutive offsets."""
    return [
        Stored(base_offset + index, timestamp, key, value) for index, value in enumerate(values)
    ]


def of_magic(magic: int, records: list[Stored], codec: str = "none") -> bytes:
    """Return records in a batch of v2, in messages of v0 or v1, or in one wrapper of those."""
    if magic == 2:
        return batch_v2(records, codec=codec).data
    if codec == "none":
        return b"".join(message(record, magic=magic).data for record in records)
    return wrapper(records, magic=magic, codec=codec).data


def batches_in(data: bytes | memoryview) -> list[RecordBatch]:
    """Return the whole batches of a log's bytes."""
    view = memoryview(data)
    return [RecordBatch(view[found.position : found.end_position]) for found in batches_of(view)]


def records_in(data: bytes | memoryview) -> list[Record]:
    """Return the records of the whole batches of a log's bytes."""
    return [record for batch in batches_in(data) for record in batch.records()]
