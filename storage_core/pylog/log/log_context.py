"""What a log needs of its surroundings, handed down and never looked up."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pylog.files.durable_io import DurableIO
from pylog.files.log_dir_failure_channel import LogDirFailureChannel
from pylog.log.log_segment import LogSegment
from pylog.scheduling.clock import Clock, SystemClock
from pylog.scheduling.scheduler import BackgroundScheduler, Scheduler

if TYPE_CHECKING:
    from pylog.config import LogConfig
    from pylog.files.file_names import SegmentTarget


@dataclass(slots=True)
class LogContext:
    """Time, randomness, background work, disk, and where its failures are noted.

    Shared by all logs of a manager.
    """

    io: DurableIO = field(default_factory=DurableIO)
    clock: Clock = field(default_factory=SystemClock)
    scheduler: Scheduler = field(default_factory=BackgroundScheduler)
    failures: LogDirFailureChannel = field(default_factory=LogDirFailureChannel)
    random: random.Random = field(default_factory=random.Random)

    def open_segment(
        self, target: SegmentTarget, config: LogConfig, *, is_new: bool = False
    ) -> LogSegment:
        """Open or make a segment, with a roll jitter of its own."""
        return LogSegment(
            target,
            config,
            io=self.io,
            clock=self.clock,
            is_new=is_new,
            roll_jitter_ms=config.random_segment_jitter(self.random),
        )
