"""Putting rewritten segments in the place of old ones: by splitting, and by compaction.

What the suffixes of a segment's files mean:

============== =====================================================================================
suffix         the files
============== =====================================================================================
``.cleaned``   are being written; the old segments count
``.swap``      are whole. They count as soon as none is ``.cleaned`` any more; until then the old
               ones do
none           are the log's
``.deleted``   have been replaced or deleted; they are removed
============== =====================================================================================

`replace_segments` puts *new* segments in the place of *old* ones. Start-up
(`pylog.log_file.file_records`) starts over or completes what was begun:

==== ======================================== =====================================================
step what is done                             a crash after it
==== ======================================== =====================================================
1    the caller writes the new segments into  the old segments are as they were; ``.cleaned``
     ``….cleaned`` files, and syncs them      files are removed
2    directory synced                         the same; all ``.cleaned`` names are on the disk
3    all but the first are renamed            the same: as long as the first, which has the lowest
     to ``….swap``                            offset, is ``.cleaned``, no ``.swap`` counts
4    directory synced                         the same
5    the first is renamed to ``….swap``       the same, or, if that is on the disk: completed
6    directory synced                         completed: the ``.swap`` files count and are all there
7    the old segments are renamed to          completed
     ``….deleted``
8    directory synced                         completed
9    one new segment after the other, by      completed
     offset, drops ``.swap``; directory
     synced after each
10   the caller removes the old segments      completed
==== ======================================== =====================================================

A power loss may keep a later rename and undo an earlier one, unless the directory was synced in
between. Without step 6 an old segment could be gone and the new ones ``.cleaned``; without step 4
the first new segment could count, and replace the old ones, while others are ``.cleaned``; without
step 8 an index of an old segment could keep its name, and be taken for that of a new one; without
the syncs of step 9 a segment that has its name already would lie between two ``.swap`` files, and
be taken for one that they replace.

Cleaning may leave nothing of the last old segments, so that the new ones end before these begin and
start-up does not know them for replaced. `replace_in_log` removes such segments one by one, the
oldest first, after step 9. A crash in between leaves those that are not gone yet: as if the
cleaning had come to them in a group of their own, and not yet. They hold what the next cleaning
removes again.

Source: LocalLog.replaceSegments, createNewCleanedSegment, UnifiedLog.replaceSegments,
LogLoader.removeTempFilesAndCollectSwapFiles (Kafka 4.3; KAFKA-6264, KAFKA-10471). Differs from
Kafka, which syncs the directory at the end only.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import TYPE_CHECKING

from pylog.errors import KafkaStorageError
from pylog.files.file_names import (
    CLEANED_FILE_SUFFIX,
    DELETED_FILE_SUFFIX,
    SEGMENT_FILE_SUFFIXES,
    SWAP_FILE_SUFFIX,
    SegmentTarget,
)
from pylog.log.local_log import delete_segment_files, remove_later

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pylog.files.durable_io import DurableIO
    from pylog.log.log_segment import LogSegment
    from pylog.log.log_state import LogState


_LOGGER = logging.getLogger(__name__)


def create_cleaned_segment(state: LogState, base_offset: int) -> LogSegment:
    """Make an empty segment with ``.cleaned`` files; see `UnifiedLog.create_cleaned_segment`."""
    target = SegmentTarget(state.local_log.directory, base_offset, CLEANED_FILE_SUFFIX)
    for suffix in SEGMENT_FILE_SUFFIXES:
        state.context.io.remove(target.path(suffix), missing_ok=True)
    segment = state.context.open_segment(target, state.config, is_new=True)
    try:
        segment.create_indexes()
    except BaseException:
        with suppress(KafkaStorageError):
            segment.delete_if_exists()
        raise
    return segment


def replace_in_log(
    state: LogState, new: Sequence[LogSegment], old: Sequence[LogSegment], *, is_async: bool = True
) -> None:
    """Put new segments in the place of old ones of a log; see `UnifiedLog.replace_segments`."""
    segments, context = state.local_log.segments, state.context
    # Retention may have deleted some of them meanwhile.
    old = [segment for segment in old if segments.get(segment.base_offset) is segment]
    if not old:
        for segment in new:
            segment.delete_if_exists()
        return
    end = new[-1].read_next_offset()
    replaced = [
        segment for segment in old if segment.base_offset < max(end, new[0].base_offset + 1)
    ]
    beyond = old[len(replaced) :]
    replace_segments(new, replaced, context.io, lambda: segments.replace(old, new))
    delete_segment_files(beyond, state.config, context, is_async=is_async)
    kept = {segment.base_offset for segment in new}
    producers = state.producer_state
    snapshots = [
        snapshot
        for segment in old
        if segment.base_offset not in kept
        and (snapshot := producers.remove_and_mark_snapshot_for_deletion(segment.base_offset))
    ]
    for segment in (*new, *old):  # who reads an old one opens it again
        segment.release()

    def remove() -> None:
        for segment in replaced:
            segment.delete_if_exists()
        for path in snapshots:
            context.io.remove(path, missing_ok=True)

    if is_async:
        remove_later(remove, state.config, context)
    else:
        remove()


def replace_segments(
    new: Sequence[LogSegment],
    old: Sequence[LogSegment],
    io: DurableIO,
    on_committed: Callable[[], object] = lambda: None,
) -> None:
    """Give the new segments the place of the old ones; see the module's table, steps 2 to 9."""
    first, *others = new
    directory = first.directory
    io.sync_directory(directory)
    for segment in others:
        segment.change_file_suffixes(CLEANED_FILE_SUFFIX, SWAP_FILE_SUFFIX)
    io.sync_directory(directory)
    first.change_file_suffixes(CLEANED_FILE_SUFFIX, SWAP_FILE_SUFFIX)
    io.sync_directory(directory)
    on_committed()
    for segment in old:
        segment.change_file_suffixes("", DELETED_FILE_SUFFIX)
    io.sync_directory(directory)
    for segment in new:
        segment.change_file_suffixes(SWAP_FILE_SUFFIX, "")
        io.sync_directory(directory)
