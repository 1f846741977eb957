"""What old disks have of topics that another cluster is to serve: ids, partitions, best replicas.

Of the replicas of a partition, that with the highest leader epoch is taken, and of equals the one
that ends last: a leader writes its epoch before its first record. Others are named where they go
further than the one that is taken.

Source: KIP-101, KIP-279; ReplicationControlManager (Kafka 4.4).
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from pylog.admin.consumer_groups import groups
from pylog.checks.files import stored_topic_id
from pylog.errors import (
    CorruptRecordError,
    LogDirectoryError,
    LogStorageError,
    UnknownTopicOrPartitionError,
)
from pylog.files.directory_lock import ensure_not_in_use
from pylog.files.file_names import LEADER_EPOCH_CHECKPOINT
from pylog.files.leader_epochs import read_epoch_entries
from pylog.files.partition_metadata import format_uuid
from pylog.locations import is_remote, join, printable_location
from pylog.log_file.segment_windows import SegmentWindows
from pylog.reading.damage import DamageReport
from pylog.reading.headers import header_windows
from pylog.reading.internal_logs import CLUSTER_METADATA, metadata_values
from pylog.reading.log_directory import ensure_known_topics
from pylog.record.batch_scan import find_bad_checksum
from pylog.recovery.access_records import access_records
from pylog.recovery.cluster_info import ensure_one_cluster, opened
from pylog.recovery.metadata_copies import find_copies, metadata_of, seed_of
from pylog.writing.node import nodes_of

if TYPE_CHECKING:
    import os
    import uuid
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from pylog.internal_topics.metadata_image import MetadataImage, TopicImage
    from pylog.reading.internal_logs import CommittedMetadata
    from pylog.reading.log_view import LogView
    from pylog.record.batch_scan import BatchHeaders, Window
    from pylog.writing.node import Node

_NO_EPOCH = -1


class OldReplica(NamedTuple):
    """The log of a partition on one old node."""

    view: LogView
    node: int  # its place among the old nodes
    last_epoch: int
    highest_epoch: int  # of any batch: one bit of a header is enough to make it wrong
    end_offset: int
    highest_producer_id: int

    @property
    def position(self) -> tuple[int, int]:
        """The last epoch, and the end: of two replicas, the higher one is taken."""
        return self.last_epoch, self.end_offset


class AdoptedTopic(NamedTuple):
    """A topic, and the replicas of each of its partitions, the best one first."""

    name: str
    topic_id: uuid.UUID | None
    replicas: dict[int, list[OldReplica]]
    image: TopicImage | None  # what the old metadata says


def adopted_topics(
    views: Iterable[LogView],
    nodes: Mapping[str, Node],
    image: MetadataImage | None,
    topics: Collection[str] | None,
) -> list[AdoptedTopic]:
    """Return what log directories have of topics, sorted by name."""
    found: dict[str, list[LogView]] = defaultdict(list)
    for view in views:
        if view.topic_partition != CLUSTER_METADATA and not view.directory.state:
            found[view.topic].append(view)
    known = {} if image is None else {each.name: each for each in image.topics}
    if topics is not None:
        ensure_known_topics(sorted(topics), {*found, *known})
    places = {node: place for place, node in enumerate(dict.fromkeys(nodes.values()))}
    return [
        _adopted_topic(name, found[name], nodes, places, known.get(name))
        for name in sorted({*found, *known} if topics is None else topics)
    ]


def _adopted_topic(
    name: str,
    views: Sequence[LogView],
    nodes: Mapping[str, Node],
    places: Mapping[Node, int],
    image: TopicImage | None,
) -> AdoptedTopic:
    ids = {found for each in views if (found := stored_topic_id(each)) is not None}
    if image is not None and (not ids or image.topic_id in ids):
        ids = {image.topic_id}
    if len(ids) > 1:
        shown = " and ".join(sorted(map(format_uuid, ids)))
        where = printable_location(views[0].directory.path)
        reason = (
            f"topic {name} has the ids {shown} on these disks, so it was deleted and made again: "
            "give only the log directories of the one that is meant"
        )
        raise LogDirectoryError(reason, where)
    replicas: dict[int, list[OldReplica]] = defaultdict(list)
    for view in views:
        place = places[nodes[view.directory.log_directory]]
        replicas[view.partition].append(_replica(view, place))
    numbers = set(replicas) | (set() if image is None else set(image.partitions))
    return AdoptedTopic(
        name,
        next(iter(ids), None),
        {
            number: sorted(replicas.get(number, ()), key=lambda each: each.position, reverse=True)
            for number in range(max(numbers, default=-1) + 1)
        },
        image,
    )


def _replica(view: LogView, place: int) -> OldReplica:
    """Read the headers of a log; what is damaged counts for nothing."""
    try:
        epoch, highest, end_offset, producer_id = _sums(view, _headers_of_intact_log(view))
    except CorruptRecordError:
        sound = view.with_damage(DamageReport(is_logged=False))
        headers = (each.window.headers for each in header_windows(sound))
        epoch, highest, end_offset, producer_id = _sums(view, headers)
    try:
        entries = read_epoch_entries(join(view.directory.path, LEADER_EPOCH_CHECKPOINT))
    except LogStorageError:
        entries = []
    epoch = max([epoch, *(each.epoch for each in entries if each.start_offset <= end_offset)])
    return OldReplica(view, place, epoch, max(epoch, highest), end_offset, producer_id)


def _sums(view: LogView, found: Iterable[BatchHeaders]) -> tuple[int, int, int, int]:
    """Return the last and the highest epoch, where the log ends, and the highest producer id."""
    epoch, highest, producer_id = _NO_EPOCH, _NO_EPOCH, -1
    end_offset = view.local_log_start_offset
    for headers in found:
        epoch = int(headers.partition_leader_epochs[-1])
        highest = max(highest, int(headers.partition_leader_epochs.max()))
        producer_id = max(producer_id, int(headers.producer_ids.max()))
        end_offset = int(headers.last_offsets[-1]) + 1
    return epoch, highest, end_offset, producer_id


def _headers_of_intact_log(view: LogView) -> Iterator[BatchHeaders]:
    """Yield the headers of all batches of a log in which nothing is odd, in a third of the time.

    `CorruptRecordError`: something is, and `header_windows` has to say what counts.
    """
    if view.pending_end_offset is not None:
        raise CorruptRecordError("a commit to it has not ended", view.directory.path)
    next_offset = -1
    for segment in view.segments:
        end = segment.size_bytes
        with segment.open_log() as source:
            windows = SegmentWindows(source, 0, end)
            for window in windows:
                headers = window.headers
                if not _is_intact(window) or headers.offsets[0] < next_offset:
                    raise CorruptRecordError("its batches are not intact", segment.file_path())
                next_offset = int(headers.last_offsets[-1]) + 1
                yield headers
            if windows.tail.position < end or source.size() != end:
                raise CorruptRecordError("its last batch is not whole", segment.file_path())


def _is_intact(window: Window) -> bool:
    """Whether batches of v2 follow each other, count what they can have, and have not changed."""
    headers = window.headers
    return (
        headers.traits.all_v2
        and not (headers.offsets[1:] <= headers.last_offsets[:-1]).any()
        and bool(headers.has_possible_count.all())
        and find_bad_checksum(window) is None
    )


class OldDisks:
    """The old disks."""

    def __init__(
        self, paths: Sequence[str | os.PathLike[str]], topics: Iterable[str] | None
    ) -> None:
        self._paths = paths
        found = [opened(each) for each in paths]
        for path, _ in found:
            if not is_remote(path):
                ensure_not_in_use(path)
        by_path = nodes_of(path for path, _ in found)
        ensure_one_cluster(by_path)
        self.nodes = list(dict.fromkeys(by_path.values()))
        self.copies, self.errors = find_copies(self.nodes)
        self.copies = [each for each in self.copies if each.end_offset]
        self.metadata: CommittedMetadata | None = None
        if self.copies:
            try:
                self.metadata = metadata_of(seed_of(self.copies), self.copies)
            except LogStorageError as error:
                self.errors.append(error)
        views = [view for _, each in found for view in each]
        self.topics = adopted_topics(
            views, by_path, self.image, None if topics is None else list(topics)
        )

    @property
    def image(self) -> MetadataImage | None:
        """What the old metadata says; None if no disk has it."""
        return None if self.metadata is None else self.metadata.image

    @property
    def highest_producer_id(self) -> int:
        """The highest id of a producer in any of the logs; -1 if there is none."""
        return max(
            (
                replica.highest_producer_id
                for topic in self.topics
                for replicas in topic.replicas.values()
                for replica in replicas
            ),
            default=-1,
        )

    def expiring_groups(self) -> list[str]:
        """Return the groups with committed offsets that a broker deletes for their age."""
        try:
            found = groups(*self._paths).groups
        except (LogStorageError, UnknownTopicOrPartitionError):  # which other findings tell
            return []
        return [each.group_id for each in found if any(one.will_expire for one in each.offsets)]

    def access_records(self, there: Iterable[bytes]) -> list[bytes]:
        """Return the records about access that the old metadata has and others lack."""
        if not self.copies:
            return []
        old = access_records(metadata_values(seed_of(self.copies).view))
        known = access_records(there)
        return [value for key, value in old.items() if key not in known]
