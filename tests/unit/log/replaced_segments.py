"""Segments that are replaced by cleaned ones."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from pylog.config import LogConfig
from pylog.files.file_names import SegmentTarget
from pylog.log.log_context import LogContext
from pylog.log.segment_replacement import replace_segments
from pylog.testing import ManualClock
from tests.support.batches import Stored, batch_v2
from tests.support.recording_io import RecordingIO

if TYPE_CHECKING:
    from pathlib import Path

    from pylog.files.durable_io import DurableIO
    from pylog.log.log_segment import LogSegment
    from tests.support.crash_replay import Operation

PARTITION = "orders-0"


def log_of(*offsets: int) -> bytes:
    return b"".join(
        batch_v2([Stored(offset, 1000 + offset, b"k", b"v%d" % offset)]).data for offset in offsets
    )


# A compaction: fewer records, and the second segment begins elsewhere.
OLD = {0: log_of(0, 1, 2, 3), 10: log_of(10, 11, 12)}
NEW = {0: log_of(1), 3: log_of(3, 12)}
LATER = {20: log_of(20)}


def name(base_offset: int, suffix: str) -> str:
    return f"{base_offset:020d}{suffix}"


def write_old(root: Path) -> Path:
    directory = root / PARTITION
    directory.mkdir(parents=True)
    for base_offset, content in {**OLD, **LATER}.items():
        (directory / name(base_offset, ".log")).write_bytes(content)
        (directory / name(base_offset, ".index")).write_bytes(bytes(8))
    return directory


def context_of(io: DurableIO) -> LogContext:
    return LogContext(io=io, clock=ManualClock(0), random=random.Random(1))


def opened(directory: Path, io: DurableIO, base_offset: int) -> LogSegment:
    return context_of(io).open_segment(SegmentTarget(str(directory), base_offset), LogConfig())


def cleaned(directory: Path, io: DurableIO, base_offset: int, content: bytes) -> LogSegment:
    target = SegmentTarget(str(directory), base_offset, ".cleaned")
    segment = context_of(io).open_segment(target, LogConfig(), is_new=True)
    segment.log.append(content)
    segment.log.sync()
    return segment


def replaced(root: Path) -> list[Operation]:
    """Replace the old segments; return what was done to the disk."""
    directory = write_old(root)
    io = RecordingIO(root)
    new = [cleaned(directory, io, base_offset, content) for base_offset, content in NEW.items()]
    old = [opened(directory, io, base_offset) for base_offset in OLD]
    replace_segments(new, old, io)
    for segment in old:
        segment.delete_if_exists()
    for segment in new:
        segment.close_handlers()
    return io.operations
