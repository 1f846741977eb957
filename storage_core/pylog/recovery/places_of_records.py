"""Where such records are that are to be gone: in any file of some disks that has batches."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from pylog.errors import CorruptRecordError, InvalidRecordError, LogStorageError
from pylog.files.file_names import (
    LOG_FILE_SUFFIX,
    find_partition_directory_name,
    find_segment_file_name,
)
from pylog.files.owned_directories import file_names, partition_directories
from pylog.files.staged_files import STAGED_PREFIX
from pylog.files.storage import open_file
from pylog.locations import join, parent_of, printable_location
from pylog.log_file.batch_walk import is_zero
from pylog.log_file.segment_windows import SegmentWindows
from pylog.model import TopicPartition
from pylog.record.batch_scan import find_bad_checksum

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from pylog.record.batch_scan import Window

_STAGED_SUFFIX = ".batches"


class PlaceOfRecords(NamedTuple):
    """A file that was looked through.

    Attributes
    ----------
    records
        How many such records it has.
    problem
        Why a part of it could not be looked through; None if all of it was.
    """

    path: str
    records: int
    problem: str | None = None


def files_with_batches(log_directory: str, topics: Iterable[str]) -> Iterator[str]:
    """Yield the paths of files of some topics that have batches.

    Segments, also in directories that no broker loads, with whatever suffix; and files of write
    jobs, which may be of any topic.
    """
    chosen = set(topics)
    for path, name in partition_directories(log_directory):
        if name.topic_partition.topic in chosen:
            for file in file_names(path):
                parts = find_segment_file_name(file)
                if parts is not None and parts.suffix == LOG_FILE_SUFFIX:
                    yield join(path, file)
    for file in file_names(log_directory):
        if file.startswith(STAGED_PREFIX) and file.endswith(_STAGED_SUFFIX):
            yield join(log_directory, file)


def live_partition_of(path: str) -> TopicPartition | None:
    """Return the partition of whose live log a file is a segment; None for any other file."""
    parts = find_segment_file_name(os.path.basename(path))  # noqa: PTH119 - kept as text
    name = find_partition_directory_name(os.path.basename(parent_of(path)))  # noqa: PTH119
    if parts is None or parts.state or name is None or name.state:
        return None
    return name.topic_partition


def look_through(path: str, count: Callable[[TopicPartition, Window], int]) -> PlaceOfRecords:
    """Count records in a file of batches; what is damaged is said."""
    name = find_partition_directory_name(os.path.basename(parent_of(path)))  # noqa: PTH119
    place = TopicPartition("", 0) if name is None else name.topic_partition
    records, shown = 0, printable_location(path)
    try:
        with open_file(path) as source:
            windows = SegmentWindows(source, 0, source.size())
            for window in windows:
                bad = find_bad_checksum(window)
                if bad is not None:
                    position = window.position_of(bad.index)
                    return PlaceOfRecords(shown, records, f"byte {position}: {bad.reason}")
                records += count(place, window)
            position, defect = windows.tail
            if defect is None and not is_zero(source, position, source.size()):
                defect = "a batch is cut short by the end of the file"
            problem = None if defect is None else f"byte {position}: {defect}"
            return PlaceOfRecords(shown, records, problem)
    except (CorruptRecordError, InvalidRecordError) as error:
        return PlaceOfRecords(shown, records, f"byte {error.position}: {error.reason}")
    except LogStorageError as error:
        return PlaceOfRecords(shown, records, str(error))
