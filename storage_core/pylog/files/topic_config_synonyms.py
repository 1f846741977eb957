"""The broker-wide names of what topics can be configured to (Kafka: ServerTopicConfigSynonyms).

A broker's ``server.properties`` and its dynamic configuration use them in the place of the names
that topics have. Where several names stand for one property, the first one that is given counts.

Source: ServerTopicConfigSynonyms, DynamicLogConfig (Kafka 4.3); the same in 3.9, but for what 4.0
removed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pylog.config import LogConfig
from pylog.config.config_property import (
    INT32_MAX,
    INT64_MAX,
    Number,
    PropertyKind,
    integer,
    long,
    parse_property,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

_MINUTE_MS = 60_000
_HOUR_MS = 60 * _MINUTE_MS

NAMES = {
    "segment.bytes": "log.segment.bytes",
    "segment.index.bytes": "log.index.size.max.bytes",
    "index.interval.bytes": "log.index.interval.bytes",
    "max.message.bytes": "message.max.bytes",
    "message.timestamp.type": "log.message.timestamp.type",
    "message.timestamp.before.max.ms": "log.message.timestamp.before.max.ms",
    "message.timestamp.after.max.ms": "log.message.timestamp.after.max.ms",
    "compression.type": "compression.type",
    "compression.gzip.level": "compression.gzip.level",
    "compression.lz4.level": "compression.lz4.level",
    "compression.zstd.level": "compression.zstd.level",
    "cleanup.policy": "log.cleanup.policy",
    "retention.bytes": "log.retention.bytes",
    "file.delete.delay.ms": "log.segment.delete.delay.ms",
    "delete.retention.ms": "log.cleaner.delete.retention.ms",
    "min.compaction.lag.ms": "log.cleaner.min.compaction.lag.ms",
    "max.compaction.lag.ms": "log.cleaner.max.compaction.lag.ms",
    "min.cleanable.dirty.ratio": "log.cleaner.min.cleanable.ratio",
    "flush.messages": "log.flush.interval.messages",
    "preallocate": "log.preallocate",
}
"""The broker-wide name of each property of topics that has one name."""


@dataclass(frozen=True, slots=True)
class _RetentionTime(PropertyKind):
    """How long to keep records: a number, each negative one for unlimited."""

    number: Number

    def parse(self, text: str) -> object:
        """Return the number, -1 for a negative one."""
        number = self.number.parse(text)
        return -1 if number < 0 and not self.number.find_defect(number) else number

    def find_defect(self, value: object) -> str | None:
        """Return which numbers are allowed, None if ``value`` is one of them."""
        if self.number.find_defect(value) is None:
            return None
        return f"a whole number, 1 to {self.number.at_most}, or a negative one for unlimited"

    def text(self, value: int) -> str:
        """Return the number in digits."""
        return str(value)


_RETENTION_MS = _RetentionTime(Number(-INT64_MAX - 1, INT64_MAX))
_RETENTION_UNITS = _RetentionTime(Number(-INT32_MAX - 1, INT32_MAX))

TIMES: Mapping[str, Mapping[str, tuple[PropertyKind, int]]] = {
    "segment.ms": {"log.roll.ms": (long(1), 1), "log.roll.hours": (integer(1), _HOUR_MS)},
    "segment.jitter.ms": {
        "log.roll.jitter.ms": (long(0), 1),
        "log.roll.jitter.hours": (integer(0), _HOUR_MS),
    },
    "retention.ms": {
        "log.retention.ms": (_RETENTION_MS, 1),
        "log.retention.minutes": (_RETENTION_UNITS, _MINUTE_MS),
        "log.retention.hours": (_RETENTION_UNITS, _HOUR_MS),
    },
    "flush.ms": {
        "log.flush.interval.ms": (long(0), 1),
        "log.flush.scheduler.interval.ms": (long(0), 1),
    },
}
"""Of each property of topics that has several names: these, the one that counts first, with the
kind and the unit in ms of their values."""

SYNONYMS_OF: Mapping[str, tuple[str, ...]] = {
    **{topic: (name,) for topic, name in NAMES.items()},
    **{topic: tuple(names) for topic, names in TIMES.items()},
}
"""The broker-wide names of each property of topics, the one that counts first."""


def dynamic_topic_properties(configs: Mapping[str, str]) -> dict[str, str]:
    """Return what a broker's dynamic configuration says, as properties of topics.

    Parameters
    ----------
    configs
        By broker-wide names. What says nothing about logs is passed over; so are names that a
        running broker cannot change, such as ``log.retention.hours``: it passes over them, too.

    Raises
    ------
    ValueError
        A value is not allowed. A broker would pass over it.

    Notes
    -----
    Source: DynamicLogConfig.RECONFIGURABLE_CONFIGS (Kafka 4.3): of each property of topics the name
    that counts first.
    """
    kinds = LogConfig.kinds()
    properties = {}
    for topic_name, (name, *_) in SYNONYMS_OF.items():
        if name not in configs:
            continue
        kind, _ = TIMES.get(topic_name, {}).get(name, (kinds[topic_name][1], 1))
        value = parse_property(name, configs[name], kind)
        if topic_name == "retention.ms" and value == 0:
            msg = f"property {name} is 0, expected a whole number from 1 on, or a negative one"
            raise ValueError(msg)
        properties[topic_name] = kind.text(value)
    return properties
