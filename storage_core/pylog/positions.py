"""What a caller says about where in a log to begin and to end: a word, an offset, or a time.

``earliest`` is the log start offset, ``latest`` the end that a consumer would read up to, and
``max_timestamp`` the offset of the record with the highest timestamp. A time is an offset
*look-up*, as in Kafka and in Spark's ``kafka`` source, and not a filter: with timestamps out of
order the range may hold earlier records, and leave out later ones. Values only; what they mean for
one log is found out in `pylog.reading.offset_resolution`.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass

from pylog.model import TopicPartition

EARLIEST = "earliest"
LATEST = "latest"
MAX_TIMESTAMP = "max_timestamp"
_WORDS = (EARLIEST, LATEST, MAX_TIMESTAMP)

# What Spark's kafka source writes into offset JSON.
EARLIEST_OFFSET = -2
LATEST_OFFSET = -1

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


@dataclass(frozen=True, slots=True)
class Timestamp:
    """The first offset whose record has a timestamp of at least ``milliseconds``.

    Attributes
    ----------
    milliseconds
        Since 1970-01-01 UTC; 0 or more.
    if_missing
        What a *start* does where no record is that late: "error", or "latest" for an empty range.
        An end is the end of the log then.
    """

    milliseconds: int
    if_missing: str = "error"

    def __post_init__(self) -> None:
        if not 0 <= self.milliseconds < 1 << 63:
            msg = f"timestamp {self.milliseconds} ms is not in 0 .. 2^63-1"
            raise ValueError(msg)
        if self.if_missing not in ("error", LATEST):
            msg = f"{self.if_missing!r} is neither 'error' nor 'latest'"
            raise ValueError(msg)

    @classmethod
    def of(cls, instant: dt.datetime, if_missing: str = "error") -> Timestamp:
        """Return the timestamp of an instant: its millisecond, or the next one if it is within one.

        Raises
        ------
        ValueError
            ``instant`` has no time zone, or lies before 1970.
        """
        if instant.tzinfo is None:
            msg = f"datetime {instant} has no time zone: say which, as in .replace(tzinfo=UTC)"
            raise ValueError(msg)
        return cls(-((_EPOCH - instant) // dt.timedelta(milliseconds=1)), if_missing)


OffsetSpec = str | int | Timestamp
"""One of the words, an offset (-2 earliest, -1 latest), or a `Timestamp` (Kafka: OffsetSpec)."""

OffsetSpecs = (
    OffsetSpec
    | dt.datetime
    | Mapping[TopicPartition | tuple[str, int] | str, "OffsetSpec | dt.datetime"]
)
"""One for all partitions, or one a partition or topic; those not named take the default. A datetime
with a time zone stands for the `Timestamp` of that instant."""


def parse_offset_spec(value: object) -> OffsetSpec:
    """Return ``value`` as a spec, with words in lower case and datetimes as timestamps.

    Raises
    ------
    ValueError
        It is not one: an unknown word, a negative offset, or a datetime without a time zone.
    """
    if isinstance(value, Timestamp):
        return value
    if isinstance(value, str):
        word = value.strip().lower()
        if word in _WORDS:
            return word
    elif isinstance(value, dt.datetime):
        return Timestamp.of(value)
    elif isinstance(value, int) and not isinstance(value, bool):
        if value == EARLIEST_OFFSET:
            return EARLIEST
        if value == LATEST_OFFSET:
            return LATEST
        if 0 <= value < 1 << 63:
            return value
    msg = (
        f"{value!r} is not a position: give 'earliest', 'latest', 'max_timestamp', an offset of 0 "
        "or more, a pylog.Timestamp or a datetime with a time zone"
    )
    raise ValueError(msg)


def spec_for(
    specs: OffsetSpecs, topic_partition: TopicPartition, default: OffsetSpec
) -> OffsetSpec:
    """Return the spec that ``specs`` has for a partition: its own, its topic's, or the default."""
    if not isinstance(specs, Mapping):
        return parse_offset_spec(specs)
    for key in (topic_partition, topic_partition.topic):
        if key in specs:
            return parse_offset_spec(specs[key])
    return default


def check_specs_are_known(specs: OffsetSpecs, known: list[TopicPartition]) -> None:
    """Raise `ValueError` if ``specs`` names a topic or partition that is not among ``known``."""
    if not isinstance(specs, Mapping):
        return
    names = {*known, *(each.topic for each in known)}
    for key in specs:
        if (TopicPartition(*key) if isinstance(key, tuple) else key) not in names:
            text = f"{key[0]}-{key[1]}" if isinstance(key, tuple) else key
            listed = ", ".join(map(str, known[:20])) or "none"
            msg = f"a position is given for {text}, which is not read; partitions read: {listed}"
            raise ValueError(msg)
