"""Which of the announced batches a log holds: found by offsets and checksums, from the files.

The log is the owner's, or is looked at by a reader: nothing is written, and damage is not an
error here but the end of what is recognised.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pylog.errors import CorruptRecordError
from pylog.files.file_names import LOG_FILE_SUFFIX, find_segment_file_name
from pylog.files.staged_entries import read_staged_entries
from pylog.files.storage import list_directory, open_file
from pylog.log_file.batch_walk import walk_headers

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from pylog.files.commit_manifest import AnnouncedPartition
    from pylog.log_file.batch_walk import PositionedHeader

    Int64Array = npt.NDArray[np.int64]


class AppliedBatches(NamedTuple):
    """How much of what was announced for a partition its log holds."""

    batch_count: int
    next_offset: int
    is_all: bool
    is_rewritten: bool = False


def find_applied_batches(
    log_directory: str, partition_directory: str, announced: AnnouncedPartition
) -> AppliedBatches:
    """Return which announced batches a log holds from the announced base offset on, in order."""
    expected = _expected(log_directory, announced)
    count, next_offset = 0, announced.base_offset
    try:
        for batch in _batches_from(partition_directory, announced.base_offset):
            wanted = next(expected, None)
            header = batch.header
            found = header.offset, header.next_offset - header.offset, header.crc
            if wanted is None or found != (next_offset, *wanted):
                is_rewritten = wanted is not None and _is_rewritten(batch, next_offset)
                return AppliedBatches(count, next_offset, is_all=False, is_rewritten=is_rewritten)
            count += 1
            next_offset = header.next_offset
    except CorruptRecordError:
        return AppliedBatches(count, next_offset, is_all=False)
    return AppliedBatches(count, next_offset, is_all=True)


def _is_rewritten(batch: PositionedHeader, expected_offset: int) -> bool:
    """Whether compaction or retention has taken records here: a leader leaves no gap."""
    header = batch.header
    offsets = header.next_offset - header.offset
    return header.offset != expected_offset or header.record_count != offsets


def _expected(log_directory: str, announced: AnnouncedPartition) -> Iterator[tuple[int, int]]:
    """Yield the number of records and the checksum of each batch that is not skipped."""
    counts, crcs = [], []
    for each in announced.files:
        path = os.path.join(log_directory, each.staged.entries_name)  # noqa: PTH118 - as text
        entries = read_staged_entries(path, each.staged)
        counts.append(entries.record_counts)
        crcs.append(entries.crcs)
    rest = slice(announced.skipped_batches, None)
    return zip(
        np.concatenate(counts)[rest].tolist(), np.concatenate(crcs)[rest].tolist(), strict=True
    )


def _batches_from(partition_directory: str, offset: int) -> Iterator[PositionedHeader]:
    """Yield the batches of a log with offsets from ``offset`` on; one may begin before it."""
    names = [find_segment_file_name(each.name) for each in list_directory(partition_directory)]
    bases = sorted(
        name.base_offset
        for name in names
        if name is not None and name.suffix == LOG_FILE_SUFFIX and not name.state
    )
    before = [base for base in bases if base <= offset]
    for base in before[-1:] + bases[len(before) :]:
        path = f"{partition_directory}/{base:020d}{LOG_FILE_SUFFIX}"
        with open_file(path) as file:
            for batch in walk_headers(file, 0, file.size(), lowest_offset=base):
                if batch.header.next_offset > offset:
                    yield batch
