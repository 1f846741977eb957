"""Where MirrorMaker 2 has put records, by the offset syncs that it keeps in one of the clusters.

A group goes on where MirrorMaker itself would let it: at the record of a sync, or right after it
where the group was further. So some records may come again, and none is left out. The topic is
compacted by partition: where a group was before the first sync that is left, nothing is known.

Source: OffsetSyncStore.translateDownstream (Kafka 4.4).
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

from pylog.errors import LogDirectoryError
from pylog.internal_topics.mirror_maker import OFFSET_SYNCS, read_offset_sync
from pylog.locations import printable_location
from pylog.model import TopicPartition
from pylog.reading.internal_logs import coordinator_records
from pylog.reading.log_directory import open_directory

if TYPE_CHECKING:
    import os

    from pylog.internal_topics.mirror_maker import OffsetSync


class MirroredOffsets:
    """The offset syncs of partitions, by the offset in the cluster that was mirrored."""

    def __init__(self) -> None:
        self._syncs: dict[TopicPartition, dict[int, int]] = {}

    def __contains__(self, topic_partition: object) -> bool:
        return topic_partition in self._syncs

    def add(self, sync: OffsetSync) -> None:
        """Take in the next sync: a topic that was mirrored anew begins again."""
        known = self._syncs.setdefault(TopicPartition(sync.topic, sync.partition), {})
        behind = [
            upstream
            for upstream, downstream in known.items()
            if upstream >= sync.upstream_offset or downstream >= sync.downstream_offset
        ]
        for each in behind:
            del known[each]
        known[sync.upstream_offset] = sync.downstream_offset

    def position(self, topic_partition: TopicPartition, old: int) -> int | None:
        """Return where whoever would read ``old`` next goes on; None where nothing tells."""
        syncs = sorted(self._syncs[topic_partition].items())
        place = bisect_right(syncs, (old, max(each for _, each in syncs))) - 1
        if place < 0:
            return None
        upstream, downstream = syncs[place]
        return downstream if upstream == old else downstream + 1


def read_mirrored_offsets(path: str | os.PathLike[str]) -> MirroredOffsets:
    """Return what the offset syncs in a log directory say."""
    found = MirroredOffsets()
    views = [each for each in open_directory(path) if OFFSET_SYNCS.fullmatch(each.topic)]
    if not views:
        reason = "no topic mm2-offset-syncs.<cluster>.internal here"
        raise LogDirectoryError(reason, printable_location(str(path)))
    names = sorted({each.topic for each in views})
    if len(names) > 1:
        reason = f"several topics have offset syncs, {names[0]} and {names[1]}: give one directory"
        raise LogDirectoryError(reason, printable_location(str(path)))
    for view in views:
        for record in coordinator_records(view):
            sync = read_offset_sync(record.key, record.value, view.directory.path)
            if sync is not None and sync.partition >= 0:
                found.add(sync)
    return found
