"""What can be configured of a broker: its log directories, and its log cleaner."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from enum import Enum, auto
from typing import ClassVar

from pylog.config.config_property import (
    INT64_MAX,
    Boolean,
    Number,
    PropertyConfig,
    config_field,
    integer,
    long,
)

_MIB = 1 << 20


class RecoveryMode(Enum):
    """What the recovery of a log may drop.

    Attributes
    ----------
    KEEP_INTACT
        A log whose recovery would drop intact batches stays closed and unchanged.
    AS_BROKER
        Such batches are dropped.
    BROKER_START
        They are dropped, and what keeps a broker from starting is an error here, too.
    """

    KEEP_INTACT = auto()
    AS_BROKER = auto()
    BROKER_START = auto()

    @property
    def keeps_intact(self) -> bool:
        """Whether recovery keeps intact batches after a damaged one."""
        return self is RecoveryMode.KEEP_INTACT


@dataclass(frozen=True, slots=True, kw_only=True)
class LogManagerConfig(PropertyConfig):
    """Configuration of all logs together: how often, how many threads.

    Raises
    ------
    ValueError
        A value is out of range. The text names the property.
    """

    source: ClassVar[str] = "a log manager"

    initial_task_delay_ms: int = config_field(
        long(0), 30_000, unit="ms", name="log.initial.task.delay.ms"
    )
    """How long after start-up the periodic tasks begin."""
    retention_check_interval_ms: int = config_field(
        long(1), 300_000, unit="ms", name="log.retention.check.interval.ms"
    )
    flush_scheduler_interval_ms: int = config_field(
        long(0), INT64_MAX, unit="ms", name="log.flush.scheduler.interval.ms"
    )
    """How often logs are looked at for ``flush.ms``."""
    flush_offset_checkpoint_interval_ms: int = config_field(
        integer(0), 60_000, unit="ms", name="log.flush.offset.checkpoint.interval.ms"
    )
    """How often recovery points are written."""
    flush_start_offset_checkpoint_interval_ms: int = config_field(
        integer(0), 60_000, unit="ms", name="log.flush.start.offset.checkpoint.interval.ms"
    )
    """How often log start offsets are written."""
    high_watermark_checkpoint_interval_ms: int = config_field(
        long(1), 5_000, unit="ms", name="replica.high.watermark.checkpoint.interval.ms"
    )
    num_recovery_threads_per_data_dir: int = config_field(
        integer(1), 2, unit="threads", name="num.recovery.threads.per.data.dir"
    )
    producer_id_expiration_ms: int = config_field(
        integer(1), 86_400_000, unit="ms", name="producer.id.expiration.ms"
    )
    producer_id_expiration_check_interval_ms: int = config_field(
        integer(1), 600_000, unit="ms", name="producer.id.expiration.check.interval.ms"
    )
    transaction_max_timeout_ms: int = config_field(
        integer(1), 900_000, unit="ms", name="transaction.max.timeout.ms"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanerConfig(PropertyConfig):
    """Configuration of the log cleaner.

    Raises
    ------
    ValueError
        A value is out of range, or the dedupe buffer has no more than 1 MiB for each thread. The
        text names the property.
    """

    source: ClassVar[str] = "a log cleaner"

    enable: bool = config_field(Boolean(), True, name="log.cleaner.enable")  # noqa: FBT003
    """Whether logs are cleaned in the background."""
    threads: int = config_field(integer(1), 1, unit="threads", name="log.cleaner.threads")
    dedupe_buffer_size: int = config_field(
        long(0), 128 * _MIB, unit="bytes", name="log.cleaner.dedupe.buffer.size"
    )
    """Memory of the offset maps of all threads together."""
    io_buffer_size: int = config_field(
        integer(0), 512 << 10, unit="bytes", name="log.cleaner.io.buffer.size"
    )
    """Memory of the buffers of all threads together; a larger batch makes them grow."""
    dedupe_buffer_load_factor: float = config_field(
        Number(0.01, 1, is_whole=False), 0.9, name="log.cleaner.io.buffer.load.factor"
    )
    """How full an offset map may become."""
    io_max_bytes_per_second: float = config_field(
        Number(1, sys.float_info.max, is_whole=False),
        sys.float_info.max,
        unit="bytes/s",
        name="log.cleaner.io.max.bytes.per.second",
    )
    """Of reading and writing together, over all threads; by default no limit."""
    backoff_ms: int = config_field(long(0), 15_000, unit="ms", name="log.cleaner.backoff.ms")
    """How long a thread that finds nothing to clean waits."""

    def __post_init__(self) -> None:
        # Not super(): slots=True makes a new class, which a bare super() does not know.
        PropertyConfig.__post_init__(self)
        if self.dedupe_buffer_size // self.threads <= _MIB:
            msg = (
                f"property log.cleaner.dedupe.buffer.size is {self.dedupe_buffer_size}, expected "
                f"more than 1 MiB for each of {self.threads} cleaner threads"
            )
            raise ValueError(msg)
