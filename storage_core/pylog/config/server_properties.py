"""``server.properties``: what a broker's own file says about its logs.

Names of a broker that say nothing about logs are passed over. What looks as if it did is refused,
where a broker passes it over, too, and Kafka's default of seven days would remove what was to be
kept: unknown names that begin with ``log.``, and names that only topics have, such as
``retention.ms``. Names that Kafka 4.0 has removed are passed over with a warning: a broker of 3.9
has them.

Several broker-wide names may stand for one property of topics. Of those that are given, the first
counts, whatever their order in the file; all of them have to be sound:

================= ==============================================================================
property          names, the one that counts first
================= ==============================================================================
segment.ms        log.roll.ms, log.roll.hours
segment.jitter.ms log.roll.jitter.ms, log.roll.jitter.hours
retention.ms      log.retention.ms, log.retention.minutes, log.retention.hours; negative: unlimited
flush.ms          log.flush.interval.ms, log.flush.scheduler.interval.ms
================= ==============================================================================

and ``log.dirs`` counts before ``log.dir``. The other properties of topics have one name each.

Source: ServerTopicConfigSynonyms, DynamicLogConfig, KafkaConfig.extractLogConfigMap,
LogConfig.SERVER_CONFIG_DEF, CleanerConfig (Kafka 4.3); the same in 3.9, but for what 4.0 removed.

A broker's dynamic configuration uses the same names. The name of each property of topics is in the
property's row of `LogConfig`; of those that have several, in `TIMES`.
"""

from __future__ import annotations

import logging
import os
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from pylog.config import CleanerConfig, LogConfig, LogManagerConfig
from pylog.config.config_property import (
    INT32_MAX,
    INT64_MAX,
    Number,
    PropertyKind,
    did_you_mean,
    integer,
    long,
    parse_property,
    removal,
)
from pylog.errors import InvalidConfigurationError, SegmentVanishedError
from pylog.files.checkpoint_file import read_text_file
from pylog.files.java_properties import ENCODING, parse_java_properties

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

_LOGGER = logging.getLogger(__name__)
DEFAULT_LOG_DIRS = ("/tmp/kafka-logs",)  # noqa: S108 - Kafka's
DEFAULT_NUM_PARTITIONS = 1
_LOG_PREFIX = "log."
_COMMA = re.compile(r"[ \t\n\x0b\f\r]*,[ \t\n\x0b\f\r]*")
_REMOVED = {
    name: version
    for removed, version in LogConfig.removed.items()
    for name in (removed, f"{_LOG_PREFIX}{removed}")
}
_PASSED_OVER = frozenset(
    {
        "log.dir.failure.timeout.ms",
        "log.local.retention.bytes",
        "log.local.retention.ms",
        "log.remote.copy.lag.bytes",
        "log.remote.copy.lag.ms",
    }
)
"""Names with the prefix that say nothing about files on a local disk without a cluster."""

_MINUTE_MS = 60_000
_HOUR_MS = 60 * _MINUTE_MS
NAMES = LogConfig.broker_names()
"""The broker-wide name of each property of topics that has one name."""


@dataclass(frozen=True, slots=True)
class _Directories(PropertyKind):
    """Paths between commas, at least one; of those that are the same, one counts."""

    def parse(self, text: str) -> tuple[str, ...]:
        """Return the paths in their order."""
        return tuple(dict.fromkeys(_COMMA.split(text)))

    def find_defect(self, value: object) -> str | None:
        """Return what is allowed, None if no path is empty."""
        return None if isinstance(value, tuple) and all(value) else "paths with commas between"

    def text(self, value: tuple[str, ...]) -> str:
        """Return the paths with commas between them."""
        return ",".join(value)


@dataclass(frozen=True, slots=True)
class _Directory(PropertyKind):
    """One path."""

    def parse(self, text: str) -> str:
        """Return the path."""
        return text

    def find_defect(self, value: object) -> str | None:
        """Return what is allowed, None if ``value`` is that."""
        return None if isinstance(value, str) and value else "a path"

    def text(self, value: str) -> str:
        """Return the path."""
        return value


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
_TOPIC_KINDS = LogConfig.kinds()


class _Meaning(NamedTuple):
    """The field that a broker-wide name sets, and its allowed values."""

    part: type  # which part of the configuration
    field_name: str  # of the part
    kind: PropertyKind  # which values are allowed
    unit_ms: int = 1  # what a value is multiplied by, unless it is negative


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerProperties:
    """The configuration that a broker's ``server.properties`` gives its logs.

    Attributes
    ----------
    log_config
        Of all topics; a topic's own properties win over it.
    manager_config, cleaner_config
        Of the log manager and of the log cleaner.
    log_dirs
        The log directories as the file names them, in its order, each once.
    metadata_log_dir
        Where ``__cluster_metadata-0`` lies; the first of the log directories if None.
    num_partitions
        How many partitions a topic gets if nobody says it.
    offsets_topic_partitions, transaction_topic_partitions, share_state_topic_partitions
        How many partitions ``__consumer_offsets``, ``__transaction_state`` and
        ``__share_group_state`` are made with; None if the file does not say it.
    offsets_retention_ms
        How long committed offsets stay that nobody commits anew.
    named
        The properties of topics that the file says something about; all others of `log_config`
        have Kafka's defaults.
    path
        The file; None if there is none.
    """

    log_config: LogConfig = field(default_factory=LogConfig)
    manager_config: LogManagerConfig = field(default_factory=LogManagerConfig)
    cleaner_config: CleanerConfig = field(default_factory=CleanerConfig)
    log_dirs: tuple[str, ...] = DEFAULT_LOG_DIRS
    metadata_log_dir: str | None = None
    num_partitions: int = DEFAULT_NUM_PARTITIONS
    offsets_topic_partitions: int | None = None
    transaction_topic_partitions: int | None = None
    share_state_topic_partitions: int | None = None
    offsets_retention_ms: int = 7 * 24 * _HOUR_MS
    named: frozenset[str] = frozenset()
    path: str | None = None

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Self:
        """Return the properties in a file.

        Raises
        ------
        InvalidConfigurationError
            There is no such file, it is not a file of Java properties, or a property that concerns
            logs is unknown, has been removed from Kafka, or has a value that it may not have. The
            text names the file, the line and the property.
        LogDirectoryError
            The file cannot be read.
        """
        values = _values_in(path)
        try:
            return cls(
                log_config=LogConfig(**values[LogConfig]),
                manager_config=LogManagerConfig(**values[LogManagerConfig]),
                cleaner_config=CleanerConfig(**values[CleanerConfig]),
                named=frozenset(
                    name
                    for name, (field_name, _) in _TOPIC_KINDS.items()
                    if field_name in values[LogConfig]
                ),
                path=str(path),
                **values[ServerProperties],
            )
        except ValueError as error:  # values that do not go together
            raise InvalidConfigurationError(str(error), path) from error

    def is_log_dir(self, directory: str) -> bool:
        """Return whether the file names a directory in ``log.dirs``."""
        return os.path.realpath(directory) in {os.path.realpath(each) for each in self.log_dirs}

    def in_order(self, directories: Iterable[str]) -> list[str]:
        """Return directories as a node takes them: that of the metadata first, then log.dirs."""
        first = () if self.metadata_log_dir is None else (self.metadata_log_dir,)
        known = [os.path.realpath(each) for each in (*first, *self.log_dirs)]
        real = {each: os.path.realpath(each) for each in directories}
        places = {each: known.index(path) for each, path in real.items() if path in known}
        return sorted(real, key=lambda each: places.get(each, len(known)))

    def warn_unless_log_dir(self, directory: str) -> None:
        """Log a warning if the file names log directories, and ``directory`` is not one of them."""
        if self.log_dirs != DEFAULT_LOG_DIRS and not self.is_log_dir(directory):
            _LOGGER.warning(
                "%s is not among the log.dirs of %s, which are %s: its configuration is used all "
                "the same",
                directory,
                self.path or "the server properties",
                ", ".join(self.log_dirs),
            )


def _values_in(path: str | os.PathLike[str]) -> dict[type, dict[str, Any]]:
    """Return the values of the fields of each part."""
    if os.path.isdir(path):  # noqa: PTH112 - text or a path
        reason = "this is a directory: give a broker's file of server properties"
        raise InvalidConfigurationError(reason, path)
    try:
        properties = parse_java_properties(read_text_file(path, ENCODING))
    except SegmentVanishedError as error:
        reason = "there is no such file of server properties"
        raise InvalidConfigurationError(reason, path) from error
    except ValueError as error:
        raise InvalidConfigurationError(str(error), path) from error
    values: dict[type, dict[str, Any]] = {
        part: {} for part in (LogConfig, LogManagerConfig, CleanerConfig, ServerProperties)
    }
    given: dict[str, list[tuple[_Meaning, object]]] = {}
    for name, (text, line) in properties.items():
        try:
            given[name] = list(_values_of(name, text))
        except ValueError as error:
            raise InvalidConfigurationError(f"line {line}: {error}", path) from error
    for name in _MEANINGS:  # a name that counts before another comes after it
        for meaning, value in given.get(name, ()):
            values[meaning.part][meaning.field_name] = value
    if values[LogConfig].get("retention_ms") == 0:
        name = next(each for each in TIMES["retention.ms"] if each in properties)
        reason = (
            f"line {properties[name].line}: property {name} is 0, expected a whole number from 1 "
            "on, or a negative one for unlimited"
        )
        raise InvalidConfigurationError(reason, path)
    return values


def _values_of(name: str, text: str) -> Iterator[tuple[_Meaning, object]]:
    """Yield what a property sets, nothing if it does not concern logs."""
    if name in _REMOVED:
        if not name.startswith(_LOG_PREFIX):
            raise ValueError(removal(name, _REMOVED[name]))
        _LOGGER.warning("%s was removed in Kafka %s, and is passed over", name, _REMOVED[name])
        return
    if name.startswith(_LOG_PREFIX) and name not in _MEANINGS and name not in _PASSED_OVER:
        msg = f"{name} is not a property of a broker{did_you_mean(name, _MEANINGS)}"
        raise ValueError(msg)
    if name in SYNONYMS_OF and name not in _MEANINGS:
        named = " or ".join(SYNONYMS_OF[name])
        msg = (
            f"{name} is a property of topics, which a broker passes over here: its name is {named}"
        )
        raise ValueError(msg)
    for meaning in _MEANINGS.get(name, ()):
        value: Any = parse_property(name, text, meaning.kind)
        is_scaled = meaning.unit_ms > 1 and value > 0
        yield meaning, value * meaning.unit_ms if is_scaled else value


_COUNTS = {
    "num.partitions": "num_partitions",
    "offsets.topic.num.partitions": "offsets_topic_partitions",
    "transaction.state.log.num.partitions": "transaction_topic_partitions",
    "share.coordinator.state.topic.num.partitions": "share_state_topic_partitions",
}


def _meanings() -> dict[str, list[_Meaning]]:
    """Return what each broker-wide name sets; of several names of a field, the last counts."""
    kinds = _TOPIC_KINDS
    meanings = {name: [_Meaning(LogConfig, *kinds[topic])] for topic, name in NAMES.items()}
    for topic, names in TIMES.items():
        for name, (kind, unit_ms) in reversed(list(names.items())):
            meanings[name] = [_Meaning(LogConfig, kinds[topic][0], kind, unit_ms)]
    for part in (LogManagerConfig, CleanerConfig):
        for name, (field_name, kind) in part.kinds().items():
            meanings.setdefault(name, []).append(_Meaning(part, field_name, kind))
    for name in ("log.dir", "log.dirs"):
        meanings[name] = [_Meaning(ServerProperties, "log_dirs", _Directories())]
    meanings["metadata.log.dir"] = [_Meaning(ServerProperties, "metadata_log_dir", _Directory())]
    for name, field_name in _COUNTS.items():
        meanings[name] = [_Meaning(ServerProperties, field_name, integer(1))]
    meanings["offsets.retention.minutes"] = [
        _Meaning(ServerProperties, "offsets_retention_ms", integer(1), _MINUTE_MS)
    ]
    return meanings


_MEANINGS = _meanings()


def dynamic_topic_properties(configs: Mapping[str, str]) -> dict[str, str]:
    """Return what a broker's dynamic configuration says, as properties of topics."""
    properties = {}
    for topic_name, (name, *_) in SYNONYMS_OF.items():
        if name not in configs:
            continue
        kind, _ = TIMES.get(topic_name, {}).get(name, (_TOPIC_KINDS[topic_name][1], 1))
        value = parse_property(name, configs[name], kind)
        if topic_name == "retention.ms" and value == 0:
            msg = f"property {name} is 0, expected a whole number from 1 on, or a negative one"
            raise ValueError(msg)
        properties[topic_name] = kind.text(value)
    return properties
