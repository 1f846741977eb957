"""A manager of compacted logs on a clock that stands still, filled batch by batch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from pylog.cleaner.log_cleaner_manager import LogCleanerManager
from pylog.config import LogConfig
from pylog.log.log_context import LogContext
from pylog.log.log_manager import LogManager
from pylog.model import TopicPartition
from pylog.testing import ManualClock, ManualScheduler
from tests.unit.log.owned_log import NOW_MS, one_batch, records_in

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

    from pylog.files.durable_io import DurableIO
    from pylog.log.unified_log import UnifiedLog

BATCH_BYTES = len(one_batch(b"value-0", key=b"key"))
COMPACT = frozenset({"compact"})
DELETE = frozenset({"delete"})
FOO, BAR = TopicPartition("foo", 0), TopicPartition("bar", 0)
CHECKPOINT = "cleaner-offset-checkpoint"


class CompactedLogs:
    """Logs whose segments hold ``batches_per_segment`` batches of one record each."""

    def __init__(
        self,
        directory: Path,
        *,
        batches_per_segment: int = 1,
        policy: frozenset[str] = COMPACT,
        io: DurableIO | None = None,
        **properties: float,
    ) -> None:
        self.directory = directory
        self.clock = ManualClock(NOW_MS)
        self.scheduler = ManualScheduler(self.clock)
        context = LogContext(clock=self.clock, scheduler=self.scheduler)
        if io is not None:
            context.io = io
        config = LogConfig(
            segment_bytes=BATCH_BYTES * batches_per_segment,
            cleanup_policy=policy,
            **properties,  # type: ignore[arg-type]  # of several types
        )
        self.manager = LogManager([directory], config, context=context).startup()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.manager.__exit__(kind, error, trace)

    def log(self, topic_partition: TopicPartition = FOO) -> UnifiedLog:
        return self.manager.get_or_create_log(topic_partition)

    def append(self, *keys: bytes, to: TopicPartition = FOO, value: bytes = b"value-0") -> None:
        """Append one batch of one record for each key, at the clock's time."""
        for key in keys:
            self.log(to).append_as_leader(
                one_batch(value, key=key, timestamp=self.clock.milliseconds())
            )

    def cleaner_manager(self) -> LogCleanerManager:
        manager = self.manager
        return LogCleanerManager(
            lambda: manager.logs, manager.cleaner_checkpoints, manager.context.failures
        )

    def checkpoint(self, topic_partition: TopicPartition, offset: int) -> None:
        """Have the checkpoint say how far a log is clean."""
        [checkpoint] = self.manager.cleaner_checkpoints.values()
        checkpoint.update(topic_partition, offset)

    def checkpointed(self) -> dict[str, int]:
        """Return what the file says, by partition as text."""
        return checkpointed(self.directory)


def checkpointed(directory: Path) -> dict[str, int]:
    """Return what a directory's file says, by partition as text."""
    lines = (directory / CHECKPOINT).read_text().splitlines()
    assert int(lines[1]) == len(lines) - 2
    entries = [line.split() for line in lines[2:]]
    return {f"{topic}-{number}": int(offset) for topic, number, offset in entries}


def records_of(log: UnifiedLog) -> list[tuple[int, bytes | None, bytes | None]]:
    """Return offset, key and value of every record in a log's files."""
    return [
        (record.offset, record.key, record.value)
        for segment in log.segments
        for record in records_in(segment.log.read_at(0, segment.size_bytes))
    ]
