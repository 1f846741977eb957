"""Topics that retention is applied to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pylog.files.durable_io import DurableIO
from pylog.log.log_context import LogContext
from pylog.testing import ManualClock, ManualScheduler
from tests.support.batches import Stored, batch_v2, message

if TYPE_CHECKING:
    from tests.support.batches import Built

NOW_MS = 1_700_000_000_000
HOUR_MS = 3_600_000


def batch(base_offset: int, timestamp: int, magic: int = 2) -> Built:
    record = Stored(base_offset, timestamp, b"k", b"value")
    return batch_v2([record]) if magic == 2 else message(record, magic=magic)


def context(io: DurableIO | None = None) -> LogContext:
    clock = ManualClock(NOW_MS)
    scheduler = ManualScheduler(clock)
    return LogContext(io=io or DurableIO(), clock=clock, scheduler=scheduler)
