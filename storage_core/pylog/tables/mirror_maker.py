"""Tables of MirrorMaker 2's topics: checkpoints, offset syncs and heartbeats."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pylog.internal_topics.mirror_maker import (
    CHECKPOINTS,
    HEARTBEATS,
    OFFSET_SYNCS,
    read_checkpoint,
    read_heartbeat,
    read_offset_sync,
)
from pylog.tables.decoded_records import decoded_table

if TYPE_CHECKING:
    import re
    from collections.abc import Callable, Sequence

    from pylog.tables.decoded_records import Decode


def _with_cluster(
    topics: re.Pattern[str],
    read: Callable[[bytes | None, bytes | None], Sequence[object] | None],
    width: int,
) -> Decode:
    """Return what puts the cluster that a topic names before what a record has."""

    def decode(topic: str, key: bytes | None, value: bytes | None) -> Sequence[object]:
        named = topics.fullmatch(topic)
        found = read(key, value)
        cluster = None if named is None else named["cluster"]
        return [cluster, *([None] * width if found is None else found)]

    return decode


def _heartbeat(topic: str, key: bytes | None, value: bytes | None) -> Sequence[object]:
    return read_heartbeat(key, value) or [None] * 3


MM2_CHECKPOINTS = decoded_table(
    "mm2_checkpoints",
    CHECKPOINTS,
    _with_cluster(CHECKPOINTS, read_checkpoint, 6),
    """\
Where consumer groups of another cluster may go on in this one, by MirrorMaker 2's checkpoints.

source_cluster       string     the cluster that the groups are of, by the topic's name
consumer_group       string     the group; null in a tombstone
mirrored_topic       string     the topic, by its name in this cluster
mirrored_partition   int32      its partition
upstream_offset      int64      where the group is in the other cluster
downstream_offset    int64      where that is in this one
committed_metadata   string     what the group has committed with its offset

Topics named ``<cluster>.checkpoints.internal`` have rows; ``.`` may be ``-`` or ``_``, as
``replication.policy.separator`` says.
""",
)
MM2_OFFSET_SYNCS = decoded_table(
    "mm2_offset_syncs",
    OFFSET_SYNCS,
    _with_cluster(OFFSET_SYNCS, read_offset_sync, 4),
    """\
Which record of one cluster is which in another one, by MirrorMaker 2's offset syncs.

other_cluster        string     the cluster that the topic's name has: the target, or the source
                                where ``offset-syncs.topic.location`` is ``target``
source_topic         string     the topic, by its name in the source; null in a tombstone
source_partition     int32      its partition
upstream_offset      int64      the record's offset in the source
downstream_offset    int64      its offset in the target

Topics named ``mm2-offset-syncs.<cluster>.internal`` have rows; ``.`` may be ``-`` or ``_``.
""",
)
MM2_HEARTBEATS = decoded_table(
    "mm2_heartbeats",
    HEARTBEATS,
    _heartbeat,
    """\
When MirrorMaker 2 has worked, by its heartbeats.

source_cluster       string     where from; null in a tombstone
target_cluster       string     where to
heartbeat            timestamp  when

Topics named ``heartbeats`` have rows, and their mirrors ``<cluster>.heartbeats``.
""",
)
