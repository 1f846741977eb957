"""What an interrupted roll, deletion, compaction or split leaves in a partition directory.

==================== ============================================= ===========================
left                 by a crash                                    start-up
==================== ============================================= ===========================
``….deleted``        between renaming and removing                 removes it
``….cleaned``        while segments were rewritten                 removes it, and ``.swap``
                                                                   files at or above its offset
``….log.swap``       while the rewritten took the old ones' place  removes the old ones in its
                                                                   range, drops the suffix
other ``….swap``     the same, its ``.log`` renamed already        drops the suffix
index without log    while a segment was removed                   removes it
==================== ============================================= ===========================

What ``.cleaned`` and ``.swap`` mean, and when ``.swap`` files count, stands in
`pylog.log.segment_replacement`. The order of removals counts, since a crash may come in between,
and a power loss may keep a later one and undo an earlier one unless the directory was synced in
between:

* ``.swap`` files that do not count go before the ``.cleaned`` files that say so;
* the names of ``.swap`` files that count are forced to disk before what they replace goes;
* what they replace is gone from the disk before the first of them gets its name: an old index
  that keeps its own would be taken for that of a new segment, which may have none;
* segments drop ``.swap`` one after the other, by offset: one that has its name already and lies
  between two ``.swap`` files would be taken for one that they replace.

Source: LogLoader.removeTempFilesAndCollectSwapFiles, load (Kafka 4.3; KAFKA-6264,
KAFKA-10471), which syncs nothing here.
"""

from __future__ import annotations

import itertools
import logging
import os
from typing import TYPE_CHECKING

from pylog.errors import UnexpectedFileError
from pylog.files import disk
from pylog.files.file_names import (
    CLEANED_FILE_SUFFIX,
    DELETED_FILE_SUFFIX,
    INDEX_FILE_SUFFIX,
    LOG_FILE_SUFFIX,
    SWAP_FILE_SUFFIX,
    TIME_INDEX_FILE_SUFFIX,
    TXN_INDEX_FILE_SUFFIX,
    file_name_prefix,
)
from pylog.files.java_numbers import find_offset_of
from pylog.files.owned_directories import base_offsets_of_logs, file_names
from pylog.locations import printable_location
from pylog.log_file.file_records import FileRecords

if TYPE_CHECKING:
    from pylog.files.durable_io import DurableIO

_LOGGER = logging.getLogger(__name__)

_INDEXES = (INDEX_FILE_SUFFIX, TIME_INDEX_FILE_SUFFIX, TXN_INDEX_FILE_SUFFIX)
_TEMPORARY = (CLEANED_FILE_SUFFIX, SWAP_FILE_SUFFIX, DELETED_FILE_SUFFIX)
_CHECKPOINT_DELETED = ".checkpoint" + DELETED_FILE_SUFFIX


def tidy_directory(directory: str, io: DurableIO) -> None:
    """Finish or take back whatever was interrupted; afterwards only whole segments remain."""
    names = file_names(directory)
    if any(name.endswith(_TEMPORARY) for name in names):
        swaps = _without_temporary_files(directory, names, io)
        _remove_replaced(directory, swaps, io)
        for _, group in itertools.groupby(swaps, key=find_offset_of):
            for name in group:
                path = os.path.join(directory, name)  # noqa: PTH118
                _LOGGER.info("completing a swap: %s takes its place", printable_location(path))
                io.replace(path, path.removesuffix(SWAP_FILE_SUFFIX))
            io.sync_directory(directory)
        names = file_names(directory)
    _remove_orphaned_indexes(directory, names, io)


def _without_temporary_files(directory: str, names: list[str], io: DurableIO) -> list[str]:
    """Remove ``.deleted`` and ``.cleaned`` files; return the ``.swap`` files that count."""
    cleaned = [name for name in names if name.endswith(CLEANED_FILE_SUFFIX)]
    swaps = [name for name in names if name.endswith(SWAP_FILE_SUFFIX)]
    deleted = [
        name
        for name in names
        if name.endswith(DELETED_FILE_SUFFIX) and not name.endswith(_CHECKPOINT_DELETED)
    ]
    lowest_cleaned = min((_offset(directory, name) for name in cleaned), default=None)
    incomplete = [
        name
        for name in swaps
        if lowest_cleaned is not None and _offset(directory, name) >= lowest_cleaned
    ]
    if incomplete:
        _LOGGER.info(
            "removing %s in %s: not all was rewritten", incomplete, printable_location(directory)
        )
        _remove_all(directory, incomplete, io)
        io.sync_directory(directory)
    _remove_all(directory, [*cleaned, *deleted], io)
    return [name for name in swaps if name not in incomplete]


def _remove_all(directory: str, names: list[str], io: DurableIO) -> None:
    for name in names:
        io.remove(os.path.join(directory, name))  # noqa: PTH118


def _offset(directory: str, name: str) -> int:
    offset = find_offset_of(name)
    if offset is None:
        reason = "file name does not begin with an offset; move the file out of the directory"
        raise UnexpectedFileError(reason, os.path.join(directory, name))  # noqa: PTH118
    return offset


def _remove_replaced(directory: str, swaps: list[str], io: DurableIO) -> None:
    """Remove the segments that ``.log.swap`` files have been made of."""
    ranges = []
    for name in swaps:
        if name.endswith(LOG_FILE_SUFFIX + SWAP_FILE_SUFFIX):
            base_offset = _offset(directory, name)
            ranges.append((base_offset, _next_offset(directory, base_offset, io)))
    if not ranges:
        return
    io.sync_directory(directory)
    lowest = min(base for base, _ in ranges)
    limit = max(end for _, end in ranges)
    for name in file_names(directory):
        offset = find_offset_of(name)
        is_inside = offset is not None and lowest <= offset < limit
        if is_inside and not name.endswith(SWAP_FILE_SUFFIX):
            path = os.path.join(directory, name)  # noqa: PTH118
            _LOGGER.info(
                "removing %s: offsets %d to %d have been rewritten",
                printable_location(path),
                lowest,
                limit,
            )
            io.remove(path)
    io.sync_directory(directory)


def _next_offset(directory: str, base_offset: int, io: DurableIO) -> int:
    """Return the end of a ``.log.swap`` file; one of another name than its offset's is not read.

    Source: LogLoader.load, LogFileUtils.logFile (Kafka 4.3).
    """
    if base_offset < 0:
        return base_offset
    name = file_name_prefix(base_offset) + LOG_FILE_SUFFIX + SWAP_FILE_SUFFIX
    path = os.path.join(directory, name)  # noqa: PTH118
    if not disk.exists(path):
        return base_offset
    records = FileRecords(io, path)
    try:
        next_offset = base_offset
        for batch in records.batches_from(0):
            next_offset = batch.header.next_offset
        return next_offset
    finally:
        records.close()


def _remove_orphaned_indexes(directory: str, names: list[str], io: DurableIO) -> None:
    logs = set(base_offsets_of_logs(names))
    for name in names:
        offset = find_offset_of(name) if name.endswith(_INDEXES) else None
        if offset is not None and offset not in logs:
            path = os.path.join(directory, name)  # noqa: PTH118
            # Not what is done about it: in a dry run nothing is.
            _LOGGER.log(
                io.warning_level,
                "%s is an index without a .log of its name, and does not count",
                printable_location(path),
            )
            io.remove(path)
