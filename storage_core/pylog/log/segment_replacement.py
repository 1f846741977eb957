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
(`pylog.log.leftover_files`) starts over or completes what was begun:

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

Source: LocalLog.replaceSegments, LogLoader.removeTempFilesAndCollectSwapFiles (Kafka 4.3;
KAFKA-6264, KAFKA-10471). Differs from Kafka, which syncs the directory at the end only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pylog.files.file_names import CLEANED_FILE_SUFFIX, DELETED_FILE_SUFFIX, SWAP_FILE_SUFFIX

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pylog.files.durable_io import DurableIO
    from pylog.log.log_segment import LogSegment


def replace_segments(new: Sequence[LogSegment], old: Sequence[LogSegment], io: DurableIO) -> None:
    """Give the new segments the place of the old ones; see the module's table, steps 2 to 9.

    Parameters
    ----------
    new
        By offset, at least one. Their files are ``.cleaned`` and have been synced; they are the
        log's when this returns. The first has the lowest base offset of all, new and old; the last
        one's records reach beyond the base offset of the last old one. Start-up takes what lies
        in between for replaced.
    old
        By offset. Their files are ``.deleted`` when this returns, and for the caller to remove.
    io
        Syncs the directory.

    Raises
    ------
    KafkaStorageError
        The disk failed; start-up starts over or completes it.
    """
    first, *others = new
    directory = first.directory
    io.sync_directory(directory)
    for segment in others:
        segment.change_file_suffixes(CLEANED_FILE_SUFFIX, SWAP_FILE_SUFFIX)
    io.sync_directory(directory)
    first.change_file_suffixes(CLEANED_FILE_SUFFIX, SWAP_FILE_SUFFIX)
    io.sync_directory(directory)
    for segment in old:
        segment.change_file_suffixes("", DELETED_FILE_SUFFIX)
    io.sync_directory(directory)
    for segment in new:
        segment.change_file_suffixes(SWAP_FILE_SUFFIX, "")
        io.sync_directory(directory)
