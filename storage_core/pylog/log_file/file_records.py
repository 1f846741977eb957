"""The ``.log`` file of a segment that we own: appended to at its end, cut, read by position.

With ``preallocate`` the file is longer than its content: it is extended with zeros when it is made
and cut to its content when the segment is rolled or closed. `size_bytes` is that of the content.

Source: FileRecords (Kafka 4.3).
"""

from __future__ import annotations

import itertools
import logging
import os
from contextlib import suppress
from typing import TYPE_CHECKING

from pylog.errors import KafkaStorageError, SegmentVanishedError, UnexpectedFileError
from pylog.files import disk
from pylog.files.byte_source import ByteSource
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
from pylog.files.owned_file import OwnedFile
from pylog.locations import printable_location
from pylog.log_file.batch_walk import PositionedHeader, walk_headers

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pylog.files.durable_io import DurableIO


_LOGGER = logging.getLogger(__name__)


MAX_FILE_BYTES = 2**31 - 1


class FileRecords(OwnedFile, ByteSource):
    """The batches of one file.

    Invariant: bytes below `size_bytes` were appended in whole and are never written again, so any
    number of threads may read them while one appends.
    """

    __slots__ = ("_size_bytes",)

    def __init__(
        self, io: DurableIO, path: str, *, is_new: bool = False, preallocated_bytes: int = 0
    ) -> None:
        super().__init__(path, io)
        if is_new:
            file = self._open(create=True)
            self._size_bytes = 0
            if preallocated_bytes:
                file.truncate(preallocated_bytes)
        else:
            self._size_bytes = _size_of(path)

    @property
    def size_bytes(self) -> int:
        """Length of the content."""
        return self._size_bytes

    def size(self) -> int:
        """Return the length of the content, which is what a reader may read."""
        return self._size_bytes

    def append(self, records: bytes | bytearray | memoryview) -> int:
        """Write whole batches at the end; return the position where they begin."""
        position = self._size_bytes
        if position + len(records) > MAX_FILE_BYTES:
            msg = (
                f"appending {len(records)} bytes at {position} of {self.path} would pass "
                f"{MAX_FILE_BYTES} bytes"
            )
            raise ValueError(msg)
        try:
            self._file.write_at(position, records)
        except KafkaStorageError:
            self.revert_to(position)
            raise
        self._size_bytes = position + len(records)
        return position

    def take_over(self, path: str) -> None:
        """Rename another file of batches to this one's name, and take over its content."""
        with self._lock:
            self._io.replace(path, self.path)
            self.release()
            self._size_bytes = _size_of(self.path)

    def truncate_to(self, size_bytes: int) -> int:
        """Cut the content (and what was preallocated) to ``size_bytes``; return how much went."""
        if not 0 <= size_bytes <= self._size_bytes:
            msg = f"cannot truncate {self.path} of {self._size_bytes} bytes to {size_bytes}"
            raise ValueError(msg)
        removed = self._size_bytes - size_bytes
        if size_bytes < self._file.size():
            self._file.truncate(size_bytes)
        self._size_bytes = size_bytes
        return removed

    def trim(self) -> bool:
        """Cut off what was preallocated after the content; return whether there was something."""
        if not self._is_in_use or self._file.size() == self._size_bytes:
            return False
        self.truncate_to(self._size_bytes)
        return True

    def sync(self) -> None:
        """Force the content to disk."""
        self._file.sync()  # also of a file not written here: its last writer may have crashed

    def read_at(self, position: int, length: int) -> bytes:
        """Return content bytes ``[position, position + length)``, fewer at the end."""
        return self._file.read_at(position, max(0, min(length, self._size_bytes - position)))

    def read_into(self, position: int, buffer: memoryview) -> int:
        """Fill ``buffer`` from ``position`` on; return how many bytes of content there were."""
        length = max(0, min(len(buffer), self._size_bytes - position))
        return self._file.read_into(position, buffer[:length])

    def next_data(self, position: int) -> int | None:
        """Return ``position``: content has no holes worth looking for."""
        return position if position < self._size_bytes else None

    def batches_from(
        self, position: int = 0, *, checks_order: bool = True
    ) -> Iterator[PositionedHeader]:
        """Yield the header and position of every whole batch from a batch boundary on.

        Kafka does not check that offsets go up.
        """
        lowest_offset = 0 if checks_order else None
        return walk_headers(self, position, self._size_bytes, lowest_offset=lowest_offset)

    def find_batch(
        self, target_offset: int, position: int = 0, *, checks_order: bool = True
    ) -> PositionedHeader | None:
        """Return the first batch whose last offset is at or above a target, None if none is."""
        for batch in self.batches_from(position, checks_order=checks_order):
            if batch.header.last_offset >= target_offset:
                return batch
        return None

    def revert_to(self, position: int) -> None:
        """Take back an append that failed, so that nobody sees a half of it."""
        self._size_bytes = position
        with suppress(KafkaStorageError):
            self._file.truncate(position)


def _size_of(path: str) -> int:
    try:
        return disk.stat(path).st_size
    except FileNotFoundError as error:
        reason = "file is gone since the directory was listed"
        raise SegmentVanishedError(reason, path) from error
    except OSError as error:
        reason = f"cannot stat file: {error.strerror}"
        raise KafkaStorageError(reason, path, errno=error.errno) from error


# What an interrupted roll, deletion, compaction or split leaves in a partition directory.
#
# ==================== ============================================= ===========================
# left                 by a crash                                    start-up
# ==================== ============================================= ===========================
# ``….deleted``        between renaming and removing                 removes it
# ``….cleaned``        while segments were rewritten                 removes it, and ``.swap``
#                                                                    files at or above its offset
# ``….log.swap``       while the rewritten took the old ones' place  removes the old ones in its
#                                                                    range, drops the suffix
# other ``….swap``     the same, its ``.log`` renamed already        drops the suffix
# index without log    while a segment was removed                   removes it
# ==================== ============================================= ===========================
#
# What ``.cleaned`` and ``.swap`` mean, and when ``.swap`` files count, stands in
# `pylog.log.segment_replacement`. The order of removals counts, since a crash may come in between,
# and a power loss may keep a later one and undo an earlier one unless the directory was synced in
# between:
#
# * ``.swap`` files that do not count go before the ``.cleaned`` files that say so;
# * the names of ``.swap`` files that count are forced to disk before what they replace goes;
# * what they replace is gone from the disk before the first of them gets its name: an old index
#   that keeps its own would be taken for that of a new segment, which may have none;
# * segments drop ``.swap`` one after the other, by offset: one that has its name already and lies
#   between two ``.swap`` files would be taken for one that they replace.
#
# Source: LogLoader.removeTempFilesAndCollectSwapFiles, load (Kafka 4.3; KAFKA-6264,
# KAFKA-10471), which syncs nothing here.


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
