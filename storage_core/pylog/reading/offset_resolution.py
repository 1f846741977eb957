"""Where a range of offsets begins or ends in one log: the offset that a position stands for there.

See `pylog.positions` for what a caller may say.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from pylog.errors import LogStorageError, OffsetOutOfRangeError
from pylog.positions import EARLIEST, LATEST, MAX_TIMESTAMP, Timestamp
from pylog.reading.remote_offsets import find_remote_offsets, remote_offsets_note
from pylog.reading.timestamp_lookup import find_max_timestamp, find_offset_for_timestamp

if TYPE_CHECKING:
    from pylog.positions import OffsetSpec
    from pylog.reading.log_view import LogView

_LOGGER = logging.getLogger(__name__)


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
        From `pylog.positions.parse_offset_spec`.
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
        record = find_offset_for_timestamp(view, spec.milliseconds)
        if record is not None and record.offset < latest:
            return record.offset
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
        record = find_offset_for_timestamp(view, spec.milliseconds)
        return latest if record is None or record.offset >= latest else record.offset
    return _resolve(spec, view, latest)


def _resolve(spec: str | int, view: LogView, latest: int) -> int:
    if spec == EARLIEST:
        return view.log_start_offset
    if spec == LATEST:
        return latest
    if spec == MAX_TIMESTAMP:
        record = find_max_timestamp(view)
        return latest if record is None else record.offset
    offset = int(spec)
    if not view.log_start_offset <= offset <= view.log_end_offset:
        raise OffsetOutOfRangeError(
            str(view.topic_partition), offset, view.log_start_offset, view.log_end_offset
        )
    return offset
