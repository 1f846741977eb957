"""Where a range of offsets begins or ends: earliest, latest, an offset, or a timestamp.

A timestamp is an offset *look-up*, as in Kafka and in Spark's ``kafka`` source, and no filter: with
timestamps out of order the range may hold earlier records, and leave out later ones.
"""

from __future__ import annotations

import datetime as dt
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pylog.errors import LogStorageError, OffsetOutOfRangeError
from pylog.model import TopicPartition
from pylog.reading.remote_offsets import find_remote_offsets, remote_offsets_note
from pylog.reading.timestamp_lookup import find_max_timestamp, find_offset_for_timestamp

if TYPE_CHECKING:
    from pylog.reading.log_view import LogView

_LOGGER = logging.getLogger(__name__)

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

    ``if_missing`` tells what a *start* does where no record is that late: "error", or "latest" for
    an empty range. An end is the end of the log then.
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


OffsetSpec = str | int | Timestamp
"""One of the words, an offset (-2 earliest, -1 latest), or a `Timestamp`."""

OffsetSpecs = (
    OffsetSpec
    | dt.datetime
    | Mapping[TopicPartition | tuple[str, int] | str, "OffsetSpec | dt.datetime"]
)
"""One for all partitions, or one a partition or topic; those not named take the default."""


def parse_offset_spec(value: object) -> OffsetSpec:
    """Return ``value`` as a spec, with words in lower case and datetimes as timestamps.

    Raises
    ------
    ValueError
        It is none: an unknown word, a negative offset, or a datetime without a time zone.
    """
    if isinstance(value, Timestamp):
        return value
    if isinstance(value, str):
        word = value.strip().lower()
        if word in _WORDS:
            return word
    elif isinstance(value, dt.datetime):
        if value.tzinfo is None:
            msg = f"datetime {value} has no time zone: say which, as in .replace(tzinfo=UTC)"
            raise ValueError(msg)
        # Up to the next millisecond: the first record at or after that instant.
        return Timestamp(-((_EPOCH - value) // dt.timedelta(milliseconds=1)))
    elif isinstance(value, int) and not isinstance(value, bool):
        if value == EARLIEST_OFFSET:
            return EARLIEST
        if value == LATEST_OFFSET:
            return LATEST
        if 0 <= value < 1 << 63:
            return value
    msg = (
        f"{value!r} is no position: give 'earliest', 'latest', 'max_timestamp', an offset of 0 or "
        "more, a pylog.Timestamp or a datetime with a time zone"
    )
    raise ValueError(msg)


def spec_for(specs: object, topic_partition: TopicPartition, default: OffsetSpec) -> OffsetSpec:
    """Return the spec that ``specs`` has for a partition: its own, its topic's, or the default."""
    if not isinstance(specs, Mapping):
        return parse_offset_spec(specs)
    for key in (topic_partition, topic_partition.topic):
        if key in specs:
            return parse_offset_spec(specs[key])
    return default


def check_specs_are_known(specs: object, known: list[TopicPartition]) -> None:
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


def clip(spec: OffsetSpec, view: LogView) -> OffsetSpec:
    """Return ``spec``; an offset outside the log gives way to the nearest one, with a warning."""
    if not isinstance(spec, int):
        return spec
    nearest = min(max(spec, view.log_start_offset), view.log_end_offset)
    if nearest != spec:
        _LOGGER.warning(
            "offset %d of %s is not in the log (%d to %d, exclusive): reading from or to %d",
            spec,
            view.topic_partition,
            view.log_start_offset,
            view.log_end_offset,
            nearest,
        )
    return nearest


def resolve_start(spec: OffsetSpec, view: LogView, latest: int) -> int:
    """Return the first offset to read.

    Parameters
    ----------
    spec
        From `parse_offset_spec`.
    view
        The log.
    latest
        What "latest" means: the log end offset, or the last stable offset.

    Raises
    ------
    OffsetOutOfRangeError
        An offset outside the log.
    LogStorageError
        No record is as late as a `Timestamp` that says "error".
    """
    _warn_of_remote_offsets(spec, view)
    if isinstance(spec, Timestamp):
        found = find_offset_for_timestamp(view, spec.milliseconds)
        if found is not None and found.offset < latest:
            return found.offset
        if spec.if_missing == "error":
            reason = (
                f"no record of {view.topic_partition} has a timestamp of {spec.milliseconds} ms or "
                "later; to start at the end of such partitions, ask for the latest offset there "
                "(Spark: option startingOffsetsByTimestampStrategy=latest)"
            )
            raise LogStorageError(reason)
        return latest
    return _resolve(spec, view, latest)


def _warn_of_remote_offsets(spec: OffsetSpec, view: LogView) -> None:
    """Say it where a read begins, or might, with records that only remote storage has."""
    is_earlier = spec == EARLIEST or isinstance(spec, Timestamp)
    if not is_earlier and not (isinstance(spec, int) and spec < view.local_log_start_offset):
        return
    remote = find_remote_offsets(view)
    if remote is not None:
        _LOGGER.warning("%s: %s", view.topic_partition, remote_offsets_note(remote))


def resolve_end(spec: OffsetSpec, view: LogView, latest: int) -> int:
    """Return the offset before which to stop; see `resolve_start`."""
    if isinstance(spec, Timestamp):
        found = find_offset_for_timestamp(view, spec.milliseconds)
        return latest if found is None or found.offset >= latest else found.offset
    return _resolve(spec, view, latest)


def _resolve(spec: str | int, view: LogView, latest: int) -> int:
    if spec == EARLIEST:
        return view.log_start_offset
    if spec == LATEST:
        return latest
    if spec == MAX_TIMESTAMP:
        found = find_max_timestamp(view)
        return latest if found is None else found.offset
    offset = int(spec)
    if not view.log_start_offset <= offset <= view.log_end_offset:
        raise OffsetOutOfRangeError(
            str(view.topic_partition), offset, view.log_start_offset, view.log_end_offset
        )
    return offset
