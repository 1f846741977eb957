"""One log, driven at random, against a plain list of batches.

The model knows batches, transactions and offsets; it takes nothing from the log but the base
offset of its active segment, below which an empty log cannot end. What is known of a producer
whose batches lie below the log's start depends on snapshots; the model follows every possibility.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from pylog.config import LogConfig
from pylog.errors import OffsetOutOfRangeError, OutOfOrderSequenceError
from pylog.log.log_context import LogContext
from pylog.log.log_manager import LogManager
from pylog.log.log_segment import FetchIsolation
from pylog.model import (
    AppendOrigin,
    CompressionType,
    ControlRecordType,
    TimestampType,
    TopicPartition,
)
from pylog.record.record_batch import RecordBatch
from pylog.record.record_batch_builder import RecordBatchBuilder
from pylog.testing import ManualClock, ManualScheduler
from tests.support import batches, peers
from tests.support.recording_io import ForgetfulIO

if TYPE_CHECKING:
    from pylog.log.unified_log import UnifiedLog
    from pylog.model import AbortedTransaction
    from tests.conftest import Counted, HowMany

STEPS_A_CASE = 50
CASES = 300
NOW_MS = 1_700_000_000_000
PARTITION = TopicPartition("orders", 0)
IDEMPOTENT = (1, 2)
TRANSACTIONAL = (11, 12)
NO_PRODUCER = -1
NO_OFFSET = 2**62
REMEMBERED_BATCHES = 5

Row = tuple[int, int, bytes | None, bytes | None]
"""Offset, timestamp, key, value."""

KEYS = st.sampled_from([None, b"", b"a", b"key"])
VALUES = st.sampled_from([None, b"", b"v", b"value" * 9, b"x" * 120])
AGES_MS = st.integers(-1_000, 1_000)
RECORDS = st.lists(st.tuples(AGES_MS, KEYS, VALUES), min_size=1, max_size=6)
CODECS = st.sampled_from(sorted(CompressionType))


@dataclass(frozen=True)
class Batch:
    """A batch as it lies in the log."""

    rows: tuple[Row, ...]
    producer_id: int = NO_PRODUCER
    is_transactional: bool = False
    marker: str = ""
    sequence: int = -1

    @property
    def first_offset(self) -> int:
        return self.rows[0][0]

    @property
    def last_offset(self) -> int:
        return self.rows[-1][0]


@dataclass
class Model:
    """What a log is, in as few words as possible."""

    batches: list[Batch] = field(default_factory=list)
    start: int = 0
    end: int = 0
    open_transactions: list[dict[int, int]] = field(default_factory=lambda: [{}])
    aborted: list[Batch] = field(default_factory=list)

    def add(self, batch: Batch) -> None:
        self.batches.append(batch)
        self.end = batch.last_offset + 1
        for known in self.open_transactions:
            follow(known, batch)

    def cut(self, end: int) -> None:
        self.batches = [batch for batch in self.batches if batch.last_offset < end]
        self.end = end
        self.start = min(self.start, end)
        self.forget()

    def forget(self) -> None:
        """Be loaded anew: from a snapshot that knew everything, or from the log's start on."""
        everything, from_start = dict[int, int](), dict[int, int]()
        for batch in self.batches:
            follow(everything, batch)
            if batch.last_offset >= self.start:
                follow(from_start, batch)
        self.open_transactions = [everything, from_start]

    def stable_offsets(self) -> set[int]:
        """Return what the last stable offset may be."""
        return {self.stable_offset(known) for known in self.open_transactions}

    def stable_offset(self, known: dict[int, int]) -> int:
        return min(max(min(known.values(), default=NO_OFFSET), self.start), self.end)

    def observe_stable_offset(self, offset: int) -> None:
        assert offset in self.stable_offsets()
        self.open_transactions = [
            known for known in self.open_transactions if self.stable_offset(known) == offset
        ]

    def committed(self, batches: list[Batch]) -> list[Row]:
        """Return the rows of ``batches`` that are not of aborted transactions."""
        aborted = set[Batch]()
        running: dict[int, list[Batch]] = {}
        for batch in self.batches:
            if batch.is_transactional:
                running.setdefault(batch.producer_id, []).append(batch)
            elif batch.marker:
                done = running.pop(batch.producer_id, [])
                aborted |= set(done) if batch.marker == "abort" else set()
        return [
            row
            for batch in batches
            if not batch.marker and batch not in aborted
            for row in batch.rows
        ]

    def read(self, start: int, bound: int) -> list[Batch]:
        """Return the batches from the one that holds ``start`` on that end below ``bound``."""
        return [
            batch
            for batch in self.batches
            if batch.last_offset >= start and batch.last_offset < bound
        ]


def follow(known: dict[int, int], batch: Batch) -> None:
    if batch.is_transactional:
        known.setdefault(batch.producer_id, batch.first_offset)
    elif batch.marker:
        known.pop(batch.producer_id, None)


def whole_batches(data: bytes) -> list[bytes]:
    found, position = [], 0
    while position + 12 <= len(data):
        size = 12 + int.from_bytes(data[position + 8 : position + 12], "big")
        if position + size > len(data):
            break
        found.append(data[position : position + size])
        position += size
    return found


def decoded(data: bytes) -> tuple[Row, ...]:
    return tuple(
        (record.offset, record.timestamp, record.key, record.value)
        for record in RecordBatch(data).records()
    )


def decoded_by_kafka_python(data: bytes) -> list[Row]:
    records = peers.kafka_python_memory.MemoryRecords(data)  # type: ignore[attr-defined]
    rows = list[Row]()
    while (batch := records.next_batch()) is not None:
        assert batch.validate_crc()
        rows += [(each.offset, each.timestamp, each.key, each.value) for each in batch]
    return rows


class UnifiedLogMachine(RuleBasedStateMachine):
    """Rules are what an owner does; after each, the offsets are compared."""

    steps: ClassVar[Counter[str]] = Counter()

    def __init__(self) -> None:
        super().__init__()
        self.directory = tempfile.TemporaryDirectory()
        self.clock = ManualClock(NOW_MS)
        self.model = Model()
        self.saved_start = 0
        self.next_producer_id = 100
        self.aliases: dict[int, int] = {}
        self.sequences: dict[int, int] = {}
        self.repeatable: dict[int, list[tuple[Batch, bytes]]] = {}
        self.manager: LogManager | None = None

    @initialize(
        segment_bytes=st.sampled_from([1_000, 1_500, 4_000]),
        interval=st.sampled_from([0, 100, 1_000]),
        stamps=st.sampled_from(list(TimestampType)[-2:]),
        codec=st.sampled_from(["producer", "producer", "uncompressed", "zstd"]),
    )
    def create(self, segment_bytes: int, interval: int, stamps: TimestampType, codec: str) -> None:
        self.config = LogConfig(
            segment_bytes=segment_bytes,
            index_interval_bytes=interval,
            segment_index_bytes=1_200,
            message_timestamp_type=stamps,
            compression_type=codec,
        )
        self.open()

    def open(self) -> None:
        self.scheduler = ManualScheduler(self.clock)
        context = LogContext(io=ForgetfulIO(), clock=self.clock, scheduler=self.scheduler)
        self.manager = LogManager([self.directory.name], self.config, context=context)
        self.manager.startup()
        self.log: UnifiedLog = self.manager.get_or_create_log(PARTITION)

    def teardown(self) -> None:
        if self.manager is not None:
            self.manager.abandon()
        self.directory.cleanup()

    # ---- appending

    def stamped(
        self, first: int, records: list[tuple[int, bytes | None, bytes | None]]
    ) -> tuple[Row, ...]:
        now = self.clock.milliseconds()
        is_append_time = self.config.message_timestamp_type is TimestampType.LOG_APPEND_TIME
        return tuple(
            (first + place, now if is_append_time else now + age, key, value)
            for place, (age, key, value) in enumerate(records)
        )

    def built(
        self,
        records: list[tuple[int, bytes | None, bytes | None]],
        codec: CompressionType,
        **producer: int,
    ) -> bytes:
        is_transactional = bool(producer.pop("transactional", 0))
        builder = RecordBatchBuilder(
            compression=codec,
            is_transactional=is_transactional,
            **producer,  # type: ignore[arg-type]
        )
        for age, key, value in records:
            builder.append(self.clock.milliseconds() + age, key, value)
        return builder.build()

    @rule(records=RECORDS, codec=CODECS)
    def append(
        self, records: list[tuple[int, bytes | None, bytes | None]], codec: CompressionType
    ) -> None:
        batch = Batch(self.stamped(self.model.end, records))
        info = self.log.append_as_leader(self.built(records, codec))
        assert (info.first_offset, info.last_offset) == (batch.first_offset, batch.last_offset)
        self.model.add(batch)
        self.steps["append"] += 1

    @rule(producer=st.sampled_from(IDEMPOTENT + TRANSACTIONAL), records=RECORDS, codec=CODECS)
    def append_of_producer(
        self,
        producer: int,
        records: list[tuple[int, bytes | None, bytes | None]],
        codec: CompressionType,
    ) -> None:
        producer_id = self.producer_id(producer)
        is_transactional = producer in TRANSACTIONAL
        sequence = self.sequences.get(producer_id, 0)
        data = self.built(
            records,
            codec,
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=sequence,
            transactional=int(is_transactional),
        )
        rows = self.stamped(self.model.end, records)
        batch = Batch(rows, producer_id, is_transactional, sequence=sequence)
        info = self.log.append_as_leader(data)
        assert (info.first_offset, info.is_duplicate) == (batch.first_offset, False)
        self.model.add(batch)
        self.sequences[producer_id] = sequence + len(records)
        remembered = self.repeatable.setdefault(producer_id, [])
        remembered.append((batch, data))
        del remembered[:-REMEMBERED_BATCHES]
        self.steps["append of producer"] += 1

    def producer_id(self, producer: int) -> int:
        return self.aliases.setdefault(producer, producer)

    @precondition(lambda self: any(self.repeatable.values()))
    @rule(data=st.data())
    def repeat(self, data: st.DataObject) -> None:
        producer_id = data.draw(st.sampled_from(sorted(p for p, b in self.repeatable.items() if b)))
        batch, sent = data.draw(st.sampled_from(self.repeatable[producer_id]))
        info = self.log.append_as_leader(sent)
        assert info.is_duplicate
        assert (info.first_offset, info.last_offset) == (batch.first_offset, batch.last_offset)
        self.steps["repeat"] += 1

    @precondition(lambda self: any(self.repeatable.values()))
    @rule(data=st.data(), ahead=st.integers(1, 3))
    def skip_a_sequence(self, data: st.DataObject, ahead: int) -> None:
        producer_id = data.draw(st.sampled_from(sorted(p for p, b in self.repeatable.items() if b)))
        bad = self.built(
            [(0, None, b"never")],
            CompressionType.NONE,
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=self.sequences[producer_id] + ahead,
            transactional=int(producer_id not in self.idempotent_ids()),
        )
        with pytest.raises(OutOfOrderSequenceError):
            self.log.append_as_leader(bad)
        self.steps["skip a sequence"] += 1

    def idempotent_ids(self) -> set[int]:
        return {self.producer_id(producer) for producer in IDEMPOTENT}

    @rule(producer=st.sampled_from(TRANSACTIONAL), marker=st.sampled_from(["commit", "abort"]))
    def end_transaction(self, producer: int, marker: str) -> None:
        producer_id = self.producer_id(producer)
        kind = ControlRecordType.COMMIT if marker == "commit" else ControlRecordType.ABORT
        now = self.clock.milliseconds()
        sent = batches.marker(0, kind, producer_id=producer_id, timestamp=now).data
        info = self.log.append_as_leader(sent, origin=AppendOrigin.COORDINATOR)
        assert info.first_offset == self.model.end
        key = b"\0\0\0\1" if marker == "commit" else b"\0\0\0\0"
        rows = ((self.model.end, now, key, b"\0\0\0\0\0\0"),)
        self.model.add(Batch(rows, producer_id, marker=marker))
        self.steps["marker"] += 1

    @rule(records=RECORDS, codec=CODECS, gaps=st.lists(st.integers(0, 3), min_size=6, max_size=6))
    def append_as_follower(
        self,
        records: list[tuple[int, bytes | None, bytes | None]],
        codec: CompressionType,
        gaps: list[int],
    ) -> None:
        offset, now, rows = self.model.end, self.clock.milliseconds(), list[Row]()
        builder = RecordBatchBuilder(
            base_offset=offset + gaps[0], compression=codec, partition_leader_epoch=0
        )
        for (age, key, value), gap in zip(records, gaps, strict=False):
            offset += gap
            builder.append_with_offset(offset, now + age, key, value)
            rows.append((offset, now + age, key, value))
            offset += 1
        self.log.append_as_follower(builder.build())
        self.model.add(Batch(tuple(rows)))
        self.steps["append as follower"] += 1

    # ---- segments and time

    @rule(what=st.sampled_from(["roll", "flush", "reopen_clean", "reopen_unclean"]))
    def keep_house(self, what: str) -> None:
        # One rule of four, so that they are drawn less often.
        {
            "roll": self.roll,
            "flush": self.flush,
            "reopen_clean": self.reopen_clean,
            "reopen_unclean": self.reopen_unclean,
        }[what]()

    def roll(self) -> None:
        self.log.roll()
        self.steps["roll"] += 1

    def flush(self) -> None:
        self.log.flush()
        assert self.log.recovery_point == self.model.end
        self.steps["flush"] += 1

    @rule(milliseconds=st.sampled_from([0, 1, 500, 30_000, 70_000]))
    def wait(self, milliseconds: int) -> None:
        self.clock.sleep(milliseconds)
        self.scheduler.tick()
        assert self.manager is not None
        self.manager.checkpoint_log_start_offsets()
        self.saved_start = self.model.start
        self.steps["wait"] += 1

    # ---- cutting

    @rule(data=st.data())
    def truncate_to(self, data: st.DataObject) -> None:
        low = max(0, self.model.end - 40)
        offset = data.draw(st.integers(low, self.model.end + 2), label="offset")
        is_cut = offset < self.model.end
        first_base = self.log.segments[0].base_offset
        assert self.log.truncate_to(offset) is is_cut
        if not is_cut:
            return
        if offset < first_base:
            self.restart_model_at(offset)
        else:
            self.model.cut(offset)
        self.after_reload()
        self.saved_start = self.model.start
        self.steps["truncate"] += 1

    @precondition(lambda self: len(self.model.batches) > 3)
    @rule(distance=st.integers(-30, 30))
    def truncate_fully_and_start_at(self, distance: int) -> None:
        offset = max(0, self.model.end + distance)
        self.log.truncate_fully_and_start_at(offset)
        self.restart_model_at(offset)
        self.after_reload()
        self.saved_start = self.model.start
        self.steps["truncate fully"] += 1

    def restart_model_at(self, offset: int) -> None:
        self.model = Model(start=offset, end=offset)

    @rule(data=st.data())
    def delete_records(self, data: st.DataObject) -> None:
        open_from = min(
            (first for known in self.model.open_transactions for first in known.values()),
            default=NO_OFFSET,
        )
        highest = min(self.model.end, max(self.model.start, open_from))
        offset = data.draw(st.integers(self.model.start, highest), label="offset")
        assert self.log.delete_records(offset) == offset
        self.model.start = offset
        self.steps["delete records"] += 1

    @rule(data=st.data())
    def delete_old_segments(self, data: st.DataObject) -> None:
        """Lose whole segments from the start, as few as keep the log at a size."""
        self.config = self.config.with_properties(
            {
                "retention.bytes": str(data.draw(st.integers(0, 5_000), label="bytes")),
                "retention.ms": "-1",
            }
        )
        open_from = min(
            (first for known in self.model.open_transactions for first in known.values()),
            default=NO_OFFSET,
        )
        sizes = {each.base_offset: each.size_bytes for each in self.log.segments}
        bases = [*sizes, self.model.end]
        kept = sum(sizes.values())
        start = bases[0]
        for base, following in pairwise(bases):
            kept -= sizes[base]
            is_last = following == bases[-1]
            is_below = following <= self.model.start and not is_last
            is_too_much = kept >= self.config.retention_bytes and not (is_last and not sizes[base])
            if not (is_below or is_too_much):
                break
            start = following
        if start > open_from:
            return  # where the model knows no transaction's rest
        self.log.update_config(self.config)
        self.log.delete_old_segments(is_async=data.draw(st.booleans(), label="later"))
        self.model.start = max(self.model.start, start)
        self.steps["delete old segments"] += 1

    # ---- closing and opening

    def reopen_clean(self) -> None:
        assert self.manager is not None
        ends = {self.model.end, self.end_in_files()}
        self.manager.shutdown()
        self.open()
        self.reload_model(self.model.start, ends)
        self.steps["reopen clean"] += 1

    def reopen_unclean(self) -> None:
        assert self.manager is not None
        end = self.end_in_files()
        self.manager.abandon()
        self.open()
        self.reload_model(self.saved_start, {end})
        self.steps["reopen unclean"] += 1

    def end_in_files(self) -> int:
        """Return where the last batch ends, or where the empty active segment begins."""
        active = self.log.segments[-1].base_offset
        last = self.model.batches[-1].last_offset + 1 if self.model.batches else 0
        return max(active, last)

    def reload_model(self, start: int, ends: set[int]) -> None:
        first_base = self.log.segments[0].base_offset
        start = max(start, first_base)
        if self.log.log_end_offset not in ends:
            # All that was left lay below the start.
            assert any(end < start for end in ends)
            self.restart_model_at(start)
        self.model.start = start
        self.model.end = self.log.log_end_offset
        self.saved_start = start
        self.model.forget()
        self.after_reload()

    def after_reload(self) -> None:
        """Of every producer the newest batch is known again, if it is not below the start."""
        for producer, producer_id in list(self.aliases.items()):
            sent = {each[0]: each[1] for each in self.repeatable.get(producer_id, [])}
            left = [each for each in self.model.batches if each.producer_id == producer_id]
            data = [each for each in left if not each.marker]
            newest = data[-1] if data else None
            if newest is not None and newest in sent and newest.last_offset >= self.model.start:
                self.repeatable[producer_id] = [(newest, sent[newest])]
                self.sequences[producer_id] = newest.sequence + len(newest.rows)
            else:
                # What the log knows of it now depends on its snapshots: begin as another one.
                self.repeatable.pop(producer_id, None)
                self.next_producer_id += 1
                self.aliases[producer] = self.next_producer_id

    # ---- reading

    @rule(data=st.data(), length=st.sampled_from([0, 1, 150, 700, 100_000]))
    def read(self, data: st.DataObject, length: int) -> None:
        start = data.draw(st.integers(self.model.start, self.model.end), label="start")
        isolation = data.draw(st.sampled_from(list(FetchIsolation)), label="isolation")
        bound = self.model.end
        if isolation is FetchIsolation.TXN_COMMITTED:
            bound = self.log.last_stable_offset
        expected = self.model.read(start, bound) if start < bound else []
        found, committed = self.fetch_all(start, length, isolation)
        assert [decoded(each) for each in found] == [batch.rows for batch in expected]
        if isolation is FetchIsolation.TXN_COMMITTED:
            assert committed == self.model.committed(expected)
        rows = [row for batch in expected for row in batch.rows]
        assert decoded_by_kafka_python(b"".join(found)) == rows
        self.steps[f"read {isolation.name}"] += 1

    def fetch_all(
        self, offset: int, length: int, isolation: FetchIsolation
    ) -> tuple[list[bytes], list[Row]]:
        """Read to the end; return all batches, and the rows a consumer keeps by its own rule."""
        found, kept, skipping = list[bytes](), list[Row](), set[int]()
        while True:
            fetched = self.log.read(offset, length, isolation)
            batches = whole_batches(fetched.records)
            if not batches:
                return found, kept
            pending = list(fetched.aborted_transactions or ())
            assert RecordBatch(batches[0]).header.last_offset >= offset, "read again and again"
            for data in batches:
                kept += self.kept(data, pending, skipping)
                offset = RecordBatch(data).header.next_offset
            found += batches

    def kept(
        self, data: bytes, pending: list[AbortedTransaction], skipping: set[int]
    ) -> tuple[Row, ...]:
        header = RecordBatch(data).header
        for aborted in [each for each in pending if each.first_offset <= header.last_offset]:
            if aborted.last_offset >= header.offset:
                skipping.add(aborted.producer_id)
            pending.remove(aborted)
        if header.is_control_batch:
            if decoded(data)[0][2] == b"\0\0\0\0":
                skipping.discard(header.producer_id)
            return ()
        if header.is_transactional and header.producer_id in skipping:
            return ()
        return decoded(data)

    @rule(below=st.integers(1, 5), above=st.integers(1, 5))
    def read_out_of_range(self, below: int, above: int) -> None:
        for offset in (self.model.start - below, self.model.end + above):
            with pytest.raises(OffsetOutOfRangeError):
                self.log.read(offset, 100)
        self.steps["read out of range"] += 1

    @rule(age=st.integers(-100_000, 2_000))
    def fetch_offset_by_timestamp(self, age: int) -> None:
        wanted = self.clock.milliseconds() + age
        late = [row for batch in self.model.batches for row in batch.rows if row[1] >= wanted]
        served = [row for row in late if row[0] >= self.model.start]
        found = self.log.fetch_offset_by_timestamp(wanted)
        if found is None:
            # Only the first segment with such a timestamp is looked at: it may be below the start,
            # or be empty, and then the time that its file was changed counts as its timestamp.
            logs = sorted(Path(self.log.directory).glob("*.log"))
            has_empty = any(path.stat().st_size == 0 for path in logs[:-1])
            assert not served or served != late or has_empty
        else:
            assert (found.offset, found.timestamp) == served[0][:2]
        self.steps["offset by timestamp"] += 1

    @precondition(lambda self: self.manager is not None)
    @invariant()
    def offsets_agree(self) -> None:
        log, model = self.log, self.model
        assert (log.log_start_offset, log.log_end_offset) == (model.start, model.end)
        assert log.high_watermark == model.end
        model.observe_stable_offset(log.last_stable_offset)


@pytest.mark.slow
def test_a_log_is_what_a_plain_list_says(how_many: HowMany, counted: Counted) -> None:
    cases = how_many(100, CASES)
    UnifiedLogMachine.steps.clear()
    run_state_machine_as_test(
        UnifiedLogMachine,
        settings=settings(
            max_examples=cases,
            stateful_step_count=STEPS_A_CASE,
            suppress_health_check=list(HealthCheck),
            deadline=None,
            # Without explaining, which traces every line and takes hours here.
            phases=set(Phase) - {Phase.explain},
        ),
    )
    counted("steps of the log machine", UnifiedLogMachine.steps)
    counted("steps of the log machine", {"in all": UnifiedLogMachine.steps.total()})
    # Hypothesis ends some cases early; how many depends on the seed.
    assert UnifiedLogMachine.steps.total() >= cases * STEPS_A_CASE * 0.7
