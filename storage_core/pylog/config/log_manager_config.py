"""What can be configured of a log manager: a broker's properties about log directories.

Names, defaults and bounds are those of Kafka 4.3.

Source: ServerLogConfigs, ReplicationConfigs, TransactionLogConfigs, TransactionStateManagerConfig
(Kafka 4.3).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import ClassVar

from pylog.config.config_property import INT64_MAX, PropertyConfig, config_field, integer, long


class RecoveryMode(Enum):
    """How far the recovery of a log may go.

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
        """Whether intact batches are kept."""
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
