"""Appending many batches at once leaves what as many appends of one batch leave, byte for byte.

Two logs get the same batches at the same time, one of them batch by batch. Configurations and
batches are random, most of the batches usual, so that many of them are written at once, between
others that are rewritten, refused, duplicates, or damaged.
"""

from __future__ import annotations

import random
import re
from typing import TYPE_CHECKING, Any

import pytest

from pylog.config import LogConfig
from pylog.errors import LogStorageError
from pylog.files.durable_io import DurableIO
from pylog.model import TimestampType
from tests.support.batches import Stored, batch_v2, batch_v2_of, wrapper
from tests.support.codecs import CODECS
from tests.unit.log.owned_log import NOW_MS, OwnedLog

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pylog.log.unified_log import UnifiedLog

SEEDS = range(40)
ROUNDS = 4


def random_config(rng: random.Random) -> LogConfig:
    """Return a configuration under which much happens within a few dozen small batches."""
    return LogConfig(
        segment_bytes=rng.choice([700, 3_000, 20_000, 1 << 22]),
        segment_index_bytes=rng.choice([24, 120, 4_096, 4_096]),
        index_interval_bytes=rng.choice([0, 1, 150, 400, 4_096]),
        segment_ms=rng.choice([40, 10**9, 10**9]),
        segment_jitter_ms=rng.choice([0, 0, 30]),
        max_message_bytes=rng.choice([250, 5_000, 5_000]),
        message_timestamp_type=TimestampType(rng.choice([0, 0, 1])),
        message_timestamp_before_max_ms=rng.choice([40, 10**15, 10**15]),
        message_timestamp_after_max_ms=rng.choice([40, 10**15, 10**15]),
        cleanup_policy=frozenset({rng.choice(["delete", "delete", "compact"])}),
        compression_type=rng.choice(["producer", "producer", "producer", "uncompressed", "lz4"]),
        flush_messages=rng.choice([1, 40, 10**9, 10**9]),
        preallocate=rng.random() < 0.2,
    )


class Producer:
    """Makes batches; remembers the sequence numbers of its own ones."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._sequences = {7: 0, 8: 0}
        self._unusual = rng.choice([0.0, 0.05, 0.3])
        self._codecs = rng.choice([("none",), ("none",), ("lz4",), CODECS])
        self._keys: tuple[bytes | None, ...] = rng.choice(
            [(b"k",), (b"k", b""), (b"k", *10 * [b"key"], None)]
        )

    def batch(self, now_ms: int) -> bytes:
        """Return one batch."""
        records = self._records(now_ms)
        if self._rng.random() >= self._unusual:
            return batch_v2(records, codec=self._rng.choice(self._codecs)).data
        makers: list[Callable[[list[Stored]], bytes]] = [
            self._idempotent,
            self._idempotent,
            self._with_bad_crc,
            self._with_foreign_fields,
            self._without_timestamps,
            self._with_wrong_max_timestamp,
            self._far_away_in_time,
            self._with_broken_records,
            self._with_gaps,
            lambda records: batch_v2(records, append_time=now_ms).data,
            lambda records: batch_v2(records, control_type=1, producer_id=9).data,
            lambda records: batch_v2(records, delete_horizon=now_ms).data,
            lambda records: wrapper(records, magic=1, codec="gzip").data,
            lambda records: batch_v2(records, base_offset=-3).data,
        ]
        return self._rng.choice(makers)(records)

    def _records(self, now_ms: int) -> list[Stored]:
        rng = self._rng
        start = now_ms + rng.randint(-25, 5)
        return [
            Stored(
                offset,
                start + rng.randint(-5, 5),
                rng.choice(self._keys),
                b"v" * rng.randint(0, 60),
            )
            for offset in range(rng.choice([1, 2, 5, 9]))
        ]

    def _idempotent(self, records: list[Stored]) -> bytes:
        producer_id = self._rng.choice([7, 8])
        sequence = self._sequences[producer_id]
        if self._rng.random() < 0.2:  # repeated, perhaps, or lost
            sequence = max(0, sequence + self._rng.choice([-1, 2]))
        elif self._rng.random() < 0.7:
            self._sequences[producer_id] = sequence + len(records)
        return batch_v2(
            records,
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=sequence,
            is_transactional=producer_id == 8,
        ).data

    def _with_bad_crc(self, records: list[Stored]) -> bytes:
        data = bytearray(batch_v2(records).data)
        data[self._rng.randrange(17, len(data))] ^= 1 << self._rng.randrange(8)
        return bytes(data)

    def _with_foreign_fields(self, records: list[Stored]) -> bytes:
        """Return a batch whose epoch is another one, and which has bits that mean nothing."""
        data = batch_v2(records).data
        plain = data[61:]
        attributes = self._rng.choice([0x80, 0x100, 0x05, 0x07])
        return batch_v2_of(
            plain,
            attributes=attributes,
            leader_epoch=99,
            record_count=len(records),
            last_offset_delta=len(records) - 1,
            base_timestamp=records[0].timestamp,
            max_timestamp=max(record.timestamp for record in records),
        )

    def _without_timestamps(self, records: list[Stored]) -> bytes:
        return batch_v2([record._replace(timestamp=-1) for record in records]).data

    def _with_wrong_max_timestamp(self, records: list[Stored]) -> bytes:
        return batch_v2_of(
            batch_v2(records).data[61:],
            record_count=len(records),
            last_offset_delta=len(records) - 1,
            base_timestamp=records[0].timestamp,
            max_timestamp=records[0].timestamp + 50,
        )

    def _far_away_in_time(self, records: list[Stored]) -> bytes:
        by = self._rng.choice([-50, 50, -(10**6), 10**6])
        return batch_v2([each._replace(timestamp=each.timestamp + by) for each in records]).data

    def _with_broken_records(self, records: list[Stored]) -> bytes:
        payload = batch_v2(records).data[61:]
        count = len(records)
        payload, count = self._rng.choice(
            [(payload + b"\0", count), (payload[:-1], count), (payload, count + 1)]
        )
        return batch_v2_of(
            payload,
            record_count=count,
            last_offset_delta=count - 1,
            base_timestamp=records[0].timestamp,
            max_timestamp=max(record.timestamp for record in records),
        )

    def _with_gaps(self, records: list[Stored]) -> bytes:
        apart = [record._replace(offset=2 * record.offset) for record in records]
        return batch_v2(apart, last_offset=self._rng.choice([None, len(records) - 1])).data


def append_one_by_one(
    log: UnifiedLog, batches: list[bytes], leader_epoch: int
) -> list[tuple[Any, ...]]:
    """Return the outcome of each batch."""
    outcomes: list[tuple[Any, ...]] = []
    for batch in batches:
        try:
            info = log.append_as_leader(batch, leader_epoch)
        except LogStorageError as error:
            outcomes.append((type(error), str(error)))
        else:
            outcomes.append((info.first_offset, info.last_offset, info.is_duplicate))
    return outcomes


def append_at_once(
    log: UnifiedLog, batches: list[bytes], leader_epoch: int, *, in_place: bool
) -> list[tuple[Any, ...] | None]:
    """Return the outcome of each batch, None where an error of a later one hides it."""
    outcomes: list[tuple[Any, ...] | None] = []
    while len(outcomes) < len(batches):
        rest = b"".join(batches[len(outcomes) :])
        try:
            appended = log.append_batches_as_leader(
                bytearray(rest) if in_place else rest, leader_epoch
            )
        except LogStorageError as error:
            [note] = error.__notes__
            match = re.match(r"(\d+) of (\d+) batches have been appended; ", note)
            assert match is not None
            outcomes += [None] * int(match[1])
            outcomes.append((type(error), str(error)))
        else:
            assert appended.valid_bytes == len(rest)
            outcomes += zip(*(column.tolist() for column in appended[:3]), strict=True)
    return outcomes


def files_of(owned: OwnedLog) -> dict[str, bytes]:
    """Return the content of every file of the log."""
    return {
        path.name: path.read_bytes()
        for path in owned.directory.iterdir()
        if path.name != "partition.metadata"
    }


def state_of(log: UnifiedLog) -> tuple[object, ...]:
    """Return what the log knows."""
    return (
        log.log_start_offset,
        log.log_end_offset,
        log.high_watermark,
        log.last_stable_offset,
        log.first_unstable_offset,
        log.recovery_point,
        log.latest_epoch,
        log.producer_state.map_end_offset,
        {
            number: (entry.last_sequence, entry.last_data_offset, entry.current_txn_first_offset)
            for number, entry in log.producer_state.active_producers.items()
        },
        [
            (
                segment.base_offset,
                segment.size_bytes,
                segment.max_timestamp_so_far,
                segment.first_batch_timestamp(),
            )
            for segment in log.segments
        ],
    )


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.thorough(one_in=4)
def test_files_state_and_errors_are_those_of_single_appends(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    config = random_config(rng)
    single, many = (
        OwnedLog(make(tmp_path / name), config, io=CountingIO()) for name in ("single", "many")
    )
    single.log.follows_end = many.log.follows_end = rng.random() < 0.5
    producer = Producer(rng)
    leader_epoch = rng.randint(0, 3)
    for _ in range(ROUNDS):
        now_ms = single.clock.milliseconds()
        batches = [producer.batch(now_ms) for _ in range(rng.choice([1, 3, 30, 80]))]
        expected = append_one_by_one(single.log, batches, leader_epoch)
        outcomes = append_at_once(many.log, batches, leader_epoch, in_place=rng.random() < 0.5)
        assert len(outcomes) == len(expected)
        for outcome, wanted in zip(outcomes, expected, strict=True):
            assert outcome is None or outcome == wanted
        assert state_of(many.log) == state_of(single.log)
        assert files_of(many) == files_of(single)
        leader_epoch += rng.choice([0, 0, 1])
        waited, does_tick = rng.choice([0, 10, 60]), rng.random() < 0.5
        for owned in (single, many):
            owned.clock.sleep(waited)
            if does_tick:
                owned.scheduler.tick()
    for owned in (single, many):
        owned.log.close()
    assert files_of(many) == files_of(single)


def make(directory: Path) -> Path:
    directory.mkdir()
    return directory


@pytest.mark.thorough
def test_the_random_batches_do_what_they_are_for(tmp_path: Path) -> None:
    """Most are written many at a time, and each kind of refusal comes up."""
    refusals = set[str]()
    appended = writes = 0
    for seed in SEEDS:
        rng = random.Random(seed)
        directory = make(tmp_path / str(seed))
        io = CountingIO()
        owned = OwnedLog(directory, random_config(rng), io=io)
        producer = Producer(rng)
        batches = [producer.batch(NOW_MS) for _ in range(80)]
        outcomes = append_at_once(owned.log, batches, 0, in_place=True)
        refused = [each[0] for each in outcomes if each is not None and isinstance(each[0], type)]
        refusals.update(kind.__name__ for kind in refused)
        appended += len(batches) - len(refused)
        writes += io.log_writes
    assert refusals >= {
        "CorruptRecordError",
        "InvalidRecordError",
        "InvalidTimestampError",
        "OutOfOrderSequenceError",
        "RecordTooLargeError",
        "RecordValidationError",
    }
    assert 3 * writes < 2 * appended


class CountingIO(DurableIO):
    """Counts the writes to ``.log`` files; does not wait for the disk."""

    def __init__(self) -> None:
        super().__init__()
        self.log_writes = 0

    def pwrite(self, path: str, descriptor: int, position: int, data: memoryview) -> int:
        self.log_writes += path.endswith(".log")
        return super().pwrite(path, descriptor, position, data)

    def fsync(self, path: str, descriptor: int) -> None:
        pass

    def fsync_directory(self, path: str) -> None:
        pass
