"""Which logs are compacted, and what of them is live."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pylog.files.checkpoint_file import read_offset_checkpoint
from pylog.files.file_names import CLEANER_OFFSET_CHECKPOINT
from pylog.inspect.live_records import find_live_records
from pylog.inspect.tables.cleaning_table import find_config
from pylog.locations import join

if TYPE_CHECKING:
    from pylog.reading.log_view import LogView


class LiveBytes(NamedTuple):
    """What of a compacted log a cleaning of all of it would keep, and what it would remove."""

    live_bytes: int
    dead_bytes: int


def is_compacted(view: LogView) -> bool | None:
    """Return whether a log is compacted; None if nothing says so.

    A configuration that is stored beside the logs says it, and so does the checkpoint of a broker's
    cleaner, which has a line for every log that it has cleaned.

    Raises
    ------
    LogStorageError
        One of the files is damaged.
    """
    config = find_config(view)
    if config is not None:
        return config.is_compact
    path = join(view.directory.log_directory, CLEANER_OFFSET_CHECKPOINT)
    return True if view.topic_partition in read_offset_checkpoint(path) else None


def live_bytes_of(view: LogView, valid_bytes: int) -> LiveBytes:
    """Return how much of a log is live, after all its records have been read, twice.

    Parameters
    ----------
    view
        The log.
    valid_bytes
        What its whole batches take.

    Raises
    ------
    CorruptRecordError, InvalidRecordError
        The log is damaged.
    """
    live = round(float(np.sum([each.live_bytes for each in find_live_records(view)])))
    return LiveBytes(live, valid_bytes - live)
