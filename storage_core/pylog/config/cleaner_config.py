"""What can be configured of the log cleaner: a broker's properties ``log.cleaner.*``.

Names and defaults are those of Kafka 4.3. Two bounds are stricter, where Kafka takes numbers with
which its cleaner comes to a halt: the throttle lets at least one byte a second pass, and the load
factor lets at least a hundredth and at most the whole of the buffer fill.

The properties ``log.cleaner.delete.retention.ms``, ``log.cleaner.min.cleanable.ratio`` and
``log.cleaner.min`` and ``max.compaction.lag.ms`` are other names of properties of topics: they are
fields of `pylog.config.LogConfig`.

Source: CleanerConfig, KafkaConfig.validateValues (Kafka 4.3).
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import ClassVar

from pylog.config.config_property import (
    Boolean,
    Number,
    PropertyConfig,
    config_field,
    integer,
    long,
)

_MIB = 1 << 20


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
