"""A `LocalLog` that a test fills."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from pylog.config import LogConfig
from pylog.files.file_names import SegmentTarget
from pylog.log.local_log import LocalLog
from pylog.log.log_context import LogContext
from pylog.log.log_segments import LogSegments
from pylog.model import TopicPartition
from pylog.testing import ManualClock, ManualScheduler
from pylog.validation.log_append_info import batches_of
from tests.unit.log.owned_log import NOW_MS, one_batch, records_in

if TYPE_CHECKING:
    from pathlib import Path

    from pylog.files.durable_io import DurableIO
    from pylog.log.log_segment import FetchDataInfo, LogOffsetMetadata

TOPIC_PARTITION = TopicPartition("topic", 0)


class Local:
    """A local log that begins at 0, on a clock that stands still."""

    def __init__(self, directory: Path, io: DurableIO | None = None) -> None:
        self.directory = directory / "topic-0"
        self.directory.mkdir()
        self.clock = ManualClock(NOW_MS)
        self.scheduler = ManualScheduler(self.clock)
        self.config = LogConfig(segment_index_bytes=1200, file_delete_delay_ms=1000)
        self._context = LogContext(
            clock=self.clock, scheduler=self.scheduler, random=random.Random(1)
        )
        if io is not None:
            self._context.io = io
        target = SegmentTarget(str(self.directory), 0)
        segment = self._context.open_segment(target, self.config, is_new=True)
        self.log = LocalLog(
            str(self.directory),
            TOPIC_PARTITION,
            self.config,
            self._context,
            LogSegments([segment]),
            recovery_point=0,
            log_end_offset=0,
        )

    def append(self, *values: bytes) -> None:
        start = self.log.log_end_offset
        data = one_batch(*values, base_offset=start)
        self.log.segments.active_segment.append(data, batches_of(memoryview(data)))
        self.log.update_log_end_offset(start + len(values))

    def fill(self, segments: int) -> None:
        """Append two batches of one record and roll, several times; the active one is empty."""
        for _ in range(segments):
            self.append(b"a")
            self.append(b"b")
            self.log.roll()

    def read(self, start_offset: int, bound: LogOffsetMetadata | None = None) -> FetchDataInfo:
        return self.log.read(
            start_offset,
            10_000,
            bound or self.log.log_end_offset_metadata,
            min_one_message=True,
            include_aborted=False,
        )

    def offsets(self, start_offset: int) -> list[int]:
        return [record.offset for record in records_in(self.read(start_offset).records)]

    @property
    def bases(self) -> list[int]:
        return list(self.log.segments.base_offsets)

    def names(self, pattern: str) -> list[str]:
        return sorted(path.name for path in self.directory.glob(pattern))

    def pass_the_delay(self) -> None:
        self.clock.sleep(self.config.file_delete_delay_ms)
        self.scheduler.tick()
