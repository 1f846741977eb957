"""A life of one log, step by step, and beside each step what its owner may rely on afterwards."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from pylog.config import LogConfig
from pylog.errors import InvalidTxnStateError, KafkaStorageError, OffsetOutOfRangeError
from pylog.log.log_context import LogContext
from pylog.log.log_manager import LogManager
from pylog.log.log_segment import FetchIsolation
from pylog.model import AppendOrigin, ControlRecordType, TopicPartition
from pylog.record.record_batch import RecordBatch
from pylog.record.record_batch_builder import RecordBatchBuilder
from pylog.testing import ManualClock, ManualScheduler
from tests.support.batches import marker

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pylog.files.durable_io import DurableIO
    from pylog.log.unified_log import UnifiedLog

NOW_MS = 1_700_000_000_000
PARTITION = TopicPartition("orders", 0)
IDEMPOTENT, TRANSACTIONAL, LEFT_OPEN = 7, 9, 11
DELETE_DELAY_MS = 60_000
NO_PRODUCER = -1


class Batch(NamedTuple):
    """A batch as it is in the log: its offsets, whose it is, and values that occur only once."""

    first_offset: int
    last_offset: int
    producer_id: int = NO_PRODUCER
    kind: str = "data"
    values: tuple[bytes, ...] = ()


class Step(NamedTuple):
    """One step, as the recording of the disk has it.

    ``operations`` is the half-open range of those it made; everything else is as it was
    afterwards. What lies below ``recovery_point`` is durable. ``truncated_to`` tells how far a
    step may take what was durable before it.
    """

    name: str
    operations: range
    batches: tuple[Batch, ...]
    log_start_offset: int
    recovery_point: int
    truncated_to: int | None = None


def config(*, preallocate: bool = False) -> LogConfig:
    """Return settings under which small logs roll and are indexed."""
    return LogConfig(
        segment_bytes=480,
        index_interval_bytes=100,
        segment_index_bytes=240,
        file_delete_delay_ms=DELETE_DELAY_MS,
        preallocate=preallocate,
    )


def manager_of(
    directory: Path, io: DurableIO, clock: ManualClock, *, preallocate: bool = False
) -> tuple[LogManager, ManualScheduler]:
    """Return a manager that is not started yet, and its scheduler."""
    scheduler = ManualScheduler(clock)
    context = LogContext(io=io, clock=clock, scheduler=scheduler)
    return LogManager([directory], config(preallocate=preallocate), context=context), scheduler


def timestamp_of(value: bytes) -> int:
    """Return the timestamp of the record with a value: the number that the value ends in."""
    return NOW_MS + int(value[-6:])


def batch_bytes(values: tuple[bytes, ...], **producer: int) -> bytes:
    """Return a batch to be appended by a leader; ``transactional=1`` makes it that."""
    is_transactional = bool(producer.pop("transactional", 0))
    builder = RecordBatchBuilder(is_transactional=is_transactional, **producer)  # type: ignore[arg-type]
    for value in values:
        builder.append(timestamp_of(value), b"key", value)
    return builder.build()


def batches_of(data: bytes) -> list[Batch]:
    """Return the whole batches in ``data``."""
    found, position = [], 0
    while position + 61 <= len(data):
        size = 12 + int.from_bytes(data[position + 8 : position + 12], "big")
        if position + size > len(data):
            break  # the read has cut it
        batch = RecordBatch(data[position : position + size])
        header = batch.header
        records = list(batch.records())
        kind = "data"
        if header.is_control_batch:
            kind = "commit" if records[0].key == b"\0\0\0\1" else "abort"
        values = tuple(record.value or b"" for record in records) if kind == "data" else ()
        found.append(Batch(header.offset, header.last_offset, header.producer_id, kind, values))
        position += size
    return found


def read_all(log: UnifiedLog, isolation: FetchIsolation = FetchIsolation.LOG_END) -> list[Batch]:
    """Return every batch from the log's start on, read in small pieces."""
    offset, found = log.log_start_offset, list[Batch]()
    while batches := batches_of(log.read(offset, 200, isolation).records):
        found += batches
        offset = batches[-1].last_offset + 1
    return found


def committed_values(log: UnifiedLog) -> list[bytes]:
    """Return what a consumer that reads committed gets, by its own rule."""
    offset, values, aborted_now = log.log_start_offset, list[bytes](), set[int]()
    while True:
        fetched = log.read(offset, 200, FetchIsolation.TXN_COMMITTED)
        batches = batches_of(fetched.records)
        if not batches:
            return values
        for batch in batches:
            for aborted in fetched.aborted_transactions or ():
                if aborted.first_offset <= batch.last_offset and offset <= aborted.last_offset:
                    aborted_now.add(aborted.producer_id)
            if batch.kind == "data" and batch.producer_id not in aborted_now:
                values += _served(batch, log.log_start_offset)
            elif batch.kind == "abort":
                aborted_now.discard(batch.producer_id)
            offset = batch.last_offset + 1


def _served(batch: Batch, log_start_offset: int) -> tuple[bytes, ...]:
    return batch.values[max(0, log_start_offset - batch.first_offset) :]


def expected_values(batches: list[Batch], log_start_offset: int) -> tuple[list[bytes], list[bytes]]:
    """Return what these batches give to consumers: all of it, and what is committed."""
    ends: dict[int, str] = {}
    decided: dict[Batch, str] = {}
    for batch in reversed(batches):
        if batch.kind != "data":
            ends[batch.producer_id] = batch.kind
        elif batch.producer_id in (TRANSACTIONAL, LEFT_OPEN):
            decided[batch] = ends.get(batch.producer_id, "open")
    undecided = [batch.first_offset for batch, fate in decided.items() if fate == "open"]
    stable = min(undecided, default=2**62)
    everything, committed = list[bytes](), list[bytes]()
    for batch in batches:
        served = _served(batch, log_start_offset)
        everything += served
        if batch.last_offset < stable and decided.get(batch) != "abort":
            committed += served
    return everything, committed


@dataclass
class Script:
    """Runs steps on a log and keeps account of them; nothing in it is asked of the log.

    But for the recovery point: the log's promise that what lies below is durable.
    """

    directory: Path
    io: DurableIO
    preallocate: bool = False
    count: Callable[[], int] = lambda: 0
    clock: ManualClock = field(default_factory=lambda: ManualClock(NOW_MS))
    steps: list[Step] = field(default_factory=list)
    batches: list[Batch] = field(default_factory=list)
    start: int = 0
    end: int = 0
    pending: list[Batch] = field(default_factory=list)
    doing: str = ""
    truncating_to: int | None = None
    sequences: dict[int, int] = field(default_factory=dict)
    manager: LogManager | None = None
    log: UnifiedLog | None = None
    _values: int = 0

    def run(self) -> None:
        """Run two lives: one that a shutdown ends, and one after it."""
        self.startup()
        self._first_life()
        self._truncations()
        self.shutdown()
        self.startup()
        self.append(2)
        self.append(2, IDEMPOTENT)
        self.append_many(3, 1, 4, 2, 5, 3, 2)
        self.flush()
        self.append_many(2, 2, 6)
        self.append(1)
        self.shutdown()

    def _first_life(self) -> None:
        for _ in range(3):
            self.append(2)
        self.flush()
        self.append(2, IDEMPOTENT)
        self.append(2, TRANSACTIONAL)
        self.append(1)
        self.mark(TRANSACTIONAL, "abort")
        self.roll()
        self.tick()
        self.append(2, TRANSACTIONAL)
        self.append(3, IDEMPOTENT)
        self.mark(TRANSACTIONAL, "commit")
        self.checkpoint()
        for _ in range(8):
            self.append(3)
        self.tick()
        self.append(2, TRANSACTIONAL)
        for _ in range(6):
            self.append(3)
        self.mark(TRANSACTIONAL, "abort")
        self.tick()
        self.append(2)
        self.flush()
        self.checkpoint()

    def _truncations(self) -> None:
        assert self.log is not None
        bases = [segment.base_offset for segment in self.log.segments]
        assert len(bases) >= 5
        self.truncate(bases[-4] + 4)
        self.append(3)
        self.append(1, leader_epoch=1)
        self.flush()
        self.checkpoint()
        self.tick(DELETE_DELAY_MS)
        self.append(2, TRANSACTIONAL)
        self.append(1)
        self.mark(TRANSACTIONAL, "abort")
        self.flush()
        self.delete_records(9)
        self.checkpoint()
        self.truncate(self.batches[-6].first_offset)
        self.append(2)
        self.append(2, LEFT_OPEN)
        self.refuse(LEFT_OPEN, gap=2)
        self.append(1)
        self.tick()
        self.refuse(LEFT_OPEN, gap=9)
        self.flush()
        self.append(2, IDEMPOTENT)
        self.append(1)
        self.roll()
        self.append(2)
        self.tick()
        self.truncate(7)
        self.append(4)
        self.flush()
        self.append(2)

    # ---- steps

    def startup(self) -> None:
        """Open the directory, and the log in it."""
        before = self._begin("startup")
        self.manager, self.scheduler = manager_of(
            self.directory, self.io, self.clock, preallocate=self.preallocate
        )
        self.manager.startup()
        self.log = self.manager.get_or_create_log(PARTITION)
        self._done("startup", before)

    def append(
        self, records: int, producer_id: int = NO_PRODUCER, *, leader_epoch: int = 0
    ) -> None:
        """Append one batch."""
        assert self.log is not None
        before = self._begin("step")
        values = tuple(b"value %06d" % (self._values + each) for each in range(records))
        self._values += records
        producer = {}
        if producer_id != NO_PRODUCER:
            sequence = self.sequences.get(producer_id, 0)
            producer = {
                "producer_id": producer_id,
                "producer_epoch": 0,
                "base_sequence": sequence,
                "transactional": int(producer_id != IDEMPOTENT),
            }
        data = batch_bytes(values, **producer)
        batch = Batch(self.end, self.end + records - 1, producer_id, "data", values)
        self._appending([batch], lambda log: log.append_as_leader(data, leader_epoch))
        if producer_id != NO_PRODUCER:
            self.sequences[producer_id] = sequence + records
        self._done(f"append {records} of {producer_id}", before)

    def mark(self, producer_id: int, kind: str) -> None:
        """End the transaction of a producer."""
        before = self._begin("step")
        control_type = ControlRecordType.COMMIT if kind == "commit" else ControlRecordType.ABORT
        now = self.clock.milliseconds()
        sent = marker(0, control_type, producer_id=producer_id, timestamp=now).data
        batch = Batch(self.end, self.end, producer_id, kind)
        coordinator = AppendOrigin.COORDINATOR
        self._appending([batch], lambda log: log.append_as_leader(sent, 0, origin=coordinator))
        self._done(f"{kind} {producer_id}", before)

    def append_many(self, *records: int) -> None:
        """Append batches of so many records at once."""
        assert self.log is not None
        before = self._begin("step")
        data, batches, offset = b"", list[Batch](), self.end
        for count in records:
            values = tuple(b"value %06d" % (self._values + each) for each in range(count))
            self._values += count
            data += batch_bytes(values)
            batches.append(Batch(offset, offset + count - 1, NO_PRODUCER, "data", values))
            offset += count
        try:
            self._appending(batches, lambda log: log.append_batches_as_leader(data))
        except KafkaStorageError:
            # How far it came is a promise of the log's, too.
            while self.pending and self.pending[0].last_offset < self.log.log_end_offset:
                self._appended(self.pending.pop(0))
            raise
        self._done(f"append {records} at once", before)

    def _appending(self, batches: list[Batch], append: Callable[[UnifiedLog], object]) -> None:
        assert self.log is not None
        self.pending = batches
        append(self.log)
        self.pending = []
        for batch in batches:
            self._appended(batch)

    def _appended(self, batch: Batch) -> None:
        self.batches.append(batch)
        self.end = batch.last_offset + 1

    def refuse(self, producer_id: int, *, gap: int) -> None:
        """Append, a gap above the end, what is no part of a transaction that is open.

        It is large enough for a segment of its own, which is begun before it is refused.
        """
        assert self.log is not None
        before = self._begin("step")
        data = batch_bytes(
            (bytes(390) + b"000000",),
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=self.sequences[producer_id],
        )
        first_offset = self.end + gap
        epoch = self.log.latest_epoch or 0
        data = struct.pack(">q4si", first_offset, data[8:12], epoch) + data[16:]
        try:
            self.log.append_as_follower(data)
        except InvalidTxnStateError:
            assert self.log.segments[-1].base_offset == first_offset
        self._done(f"refuse {producer_id} at {first_offset}", before)

    def flush(self) -> None:
        """Force everything to disk."""
        before = self._begin("step")
        assert self.log is not None
        self.log.flush()
        assert self.log.recovery_point == self.end
        self._done("flush", before)

    def roll(self) -> None:
        """Begin a new segment."""
        before = self._begin("step")
        assert self.log is not None
        self.log.roll()
        self._done("roll", before)

    def tick(self, milliseconds: int = 0) -> None:
        """Do what is due in the background."""
        before = self._begin("step")
        self.clock.sleep(milliseconds)
        self.scheduler.tick()
        self._done("tick", before)

    def checkpoint(self) -> None:
        """Write all checkpoints."""
        before = self._begin("step")
        assert self.manager is not None
        self.manager.checkpoint_log_recovery_offsets()
        self.manager.checkpoint_log_start_offsets()
        self.manager.checkpoint_high_watermarks()
        self._done("checkpoint", before)

    def delete_records(self, offset: int) -> None:
        """Move the log's start."""
        before = self._begin("step")
        assert self.log is not None
        self.log.delete_records(offset)
        self.start = offset
        self._done(f"delete records below {offset}", before)

    def truncate(self, offset: int) -> None:
        """Cut the log; the batch that holds the offset goes as a whole."""
        before = self._begin(f"truncate to {offset}")
        assert self.log is not None
        self.truncating_to = offset
        self.log.truncate_to(offset)
        self.truncating_to = None
        for batch in self.batches:
            if batch.last_offset >= offset and batch.kind == "data" and batch.producer_id >= 0:
                sequence = self.sequences[batch.producer_id] - len(batch.values)
                self.sequences[batch.producer_id] = sequence
        self.batches = [batch for batch in self.batches if batch.last_offset < offset]
        self.end = offset
        self.start = min(self.start, offset)
        self._done(f"truncate to {offset}", before, truncated_to=offset)

    def shutdown(self) -> None:
        """Close everything in order."""
        before = self._begin("shutdown")
        assert self.manager is not None
        self.manager.shutdown()
        self._done("shutdown", before, recovery_point=self.end)

    def _begin(self, doing: str) -> int:
        self.doing = doing
        return self.count()

    def _done(
        self,
        name: str,
        before: int,
        *,
        truncated_to: int | None = None,
        recovery_point: int | None = None,
    ) -> None:
        assert self.log is not None
        point = self.log.recovery_point if recovery_point is None else recovery_point
        operations = range(before, self.count())
        step = Step(name, operations, tuple(self.batches), self.start, point, truncated_to)
        self.steps.append(step)


def ensure_refused_below(log: UnifiedLog) -> None:
    """Check that nothing is served below the log's start."""
    if log.log_start_offset > 0:
        try:
            log.read(log.log_start_offset - 1, 100)
        except OffsetOutOfRangeError:
            return
        msg = f"served below the log's start {log.log_start_offset}"
        raise AssertionError(msg)
