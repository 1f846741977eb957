"""A segment that a test fills, and what can be read of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pylog.config import LogConfig
from pylog.files.durable_io import DurableIO
from pylog.files.file_names import SegmentTarget
from pylog.files.leader_epochs import LeaderEpochFileCache
from pylog.log.log_segment import LogSegment
from pylog.log.segment_recovery import SegmentRecovery
from pylog.model import OffsetPosition, TimestampOffset, TopicPartition
from pylog.producers.producer_state_manager import ProducerStateManager
from pylog.testing import ManualClock
from pylog.validation.log_append_info import batches_of
from tests.support.batches import Stored, batch_v2
from tests.unit.log.owned_log import records_in

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TOPIC_PARTITION = TopicPartition("topic", 0)
INT32_MAX = 2**31 - 1
# Sizes of batches: a header of 61 bytes, and 7 bytes around each value.
ONE_LETTER_BYTES = 69
HELLO_BYTES = 73
HELLO_THERE_BYTES = 85
START_MS = 5_000


def batch(offset: int, *values: bytes, timestamp: int | None = None, **fields: int | bool) -> bytes:
    """Return one batch; a record's timestamp is its offset, unless one is given for all."""
    return batch_v2(
        [
            Stored(offset + at, offset + at if timestamp is None else timestamp, None, value)
            for at, value in enumerate(values)
        ],
        **fields,  # type: ignore[arg-type]
    ).data


class Fixture:
    """Segments in one directory, all of which end with the test."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.clock = ManualClock(START_MS)
        self.io = DurableIO()
        self._segments: list[LogSegment] = []

    def segment(
        self,
        base_offset: int = 40,
        *,
        is_new: bool = True,
        index_interval_bytes: int = 10,
        preallocate: bool = False,
    ) -> LogSegment:
        config = LogConfig(
            segment_bytes=100_000,
            segment_index_bytes=1000,
            index_interval_bytes=index_interval_bytes,
            preallocate=preallocate,
        )
        target = SegmentTarget(str(self.directory), base_offset)
        segment = LogSegment(target, config, io=self.io, clock=self.clock, is_new=is_new)
        self._segments.append(segment)
        return segment

    def producers(self) -> ProducerStateManager:
        return ProducerStateManager(
            TOPIC_PARTITION,
            str(self.directory),
            io=self.io,
            producer_id_expiration_ms=86_400_000,
        )

    def epochs(self) -> LeaderEpochFileCache:
        path = str(self.directory / "leader-epoch-checkpoint")
        return LeaderEpochFileCache(TOPIC_PARTITION, path, io=self.io)

    def recover(
        self,
        segment: LogSegment,
        producers: ProducerStateManager | None = None,
        epochs: LeaderEpochFileCache | None = None,
    ) -> int:
        return SegmentRecovery(
            segment, producers or self.producers(), epochs, lambda _: None
        ).recover()

    def close(self) -> None:
        for segment in self._segments:
            segment.close_handlers()


def append(segment: LogSegment, data: bytes) -> None:
    segment.append(data, batches_of(memoryview(data)))


def offsets_read(segment: LogSegment, start: int, size: int = 10_000) -> list[int] | None:
    found = segment.read(start, size)
    return None if found is None else [record.offset for record in records_in(found.records)]


def all_offsets(segment: LogSegment) -> list[int]:
    return [record.offset for record in records_in(segment.log.read_at(0, segment.size_bytes))]


def offset_entries(segment: LogSegment) -> list[OffsetPosition]:
    return [segment.offset_index.entry(slot) for slot in range(segment.offset_index.entries)]


def time_entries(segment: LogSegment) -> list[TimestampOffset]:
    return [segment.time_index.entry(slot) for slot in range(segment.time_index.entries)]


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Fixture]:
    made = Fixture(tmp_path)
    yield made
    made.close()
