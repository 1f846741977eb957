"""What old disks have of topics that another cluster is to serve: ids, partitions, best replicas.

Of the replicas of a partition, that with the highest leader epoch is taken, of equals the one that
ends last, and of those one that is not damaged: a leader writes its epoch before its first record.
Others are named where they go further than the one that is taken.

Where the old metadata is there, it says which directories count. What a broker would set aside does
not: that of a topic that was deleted and made again (another id), of a partition that there is not,
and of a node that is no replica, unless no other one is left. Nor does a directory without any
``.log`` file. A ``-future`` one does where it is all that its node has. What is left out is named.

Source: KIP-101, KIP-279; ReplicationControlManager (Kafka 4.4).
"""

from __future__ import annotations

from collections import defaultdict
from contextlib import suppress
from functools import cached_property
from itertools import islice
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from pylog.admin.consumer_groups import groups
from pylog.checks.absent_partitions import RECORDED, offsets_in
from pylog.checks.files import stored_topic_id, unreadable_checkpoints
from pylog.checks.repair import missing_in_copy
from pylog.errors import (
    CorruptRecordError,
    LogDirectoryError,
    LogStorageError,
    UnknownTopicOrPartitionError,
)
from pylog.files.directory_lock import ensure_not_in_use
from pylog.files.file_names import (
    DELETE_DIR_SUFFIX,
    FUTURE_DIR_SUFFIX,
    LEADER_EPOCH_CHECKPOINT,
    LOG_START_OFFSET_CHECKPOINT,
    STRAY_DIR_SUFFIX,
)
from pylog.files.leader_epochs import read_epoch_entries
from pylog.files.partition_metadata import format_uuid
from pylog.internal_topics.versions import METADATA_VERSION
from pylog.locations import is_remote, join, location, printable_location
from pylog.log_file.segment_windows import SegmentWindows
from pylog.reading.coordinators import partition_for
from pylog.reading.damage import DamageReport
from pylog.reading.group_records import CONSUMER_OFFSETS_TOPIC
from pylog.reading.headers import header_windows
from pylog.reading.internal_logs import CLUSTER_METADATA, coordinator_records, metadata_values
from pylog.reading.log_directory import ensure_known_topics, open_directory
from pylog.reading.log_view import LogView
from pylog.reading.transactional_ids import TRANSACTION_STATE_TOPIC
from pylog.record.batch_header import TRANSACTIONAL_FLAG_MASK
from pylog.record.batch_scan import find_bad_checksum
from pylog.recovery.access_records import access_records, bound_records
from pylog.recovery.adoption_target import ensure_nothing_unfinished
from pylog.recovery.cluster_info import ensure_one_cluster, opened
from pylog.recovery.merge_endings import groups_behind
from pylog.recovery.metadata_copies import cut_metadata, find_copies, furthest_metadata
from pylog.text.words import named
from pylog.writing.node import nodes_of

if TYPE_CHECKING:
    import os
    import uuid
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from pylog.admin.consumer_groups import GroupListing
    from pylog.checks.report import RepairedPartition, RepairSummary
    from pylog.files.leader_epochs import EpochEntry
    from pylog.internal_topics.metadata_image import MetadataImage, TopicImage
    from pylog.model import TopicPartition
    from pylog.reading.log_directory import LogDirectory
    from pylog.record.batch_scan import BatchHeaders, Window
    from pylog.writing.node import Node

    Recorded = Sequence[Mapping[TopicPartition, int]]

_NO_EPOCH = -1
_SHOWN = 5
_OF_ALL = {METADATA_VERSION, "kraft.version"}
_REMOTE = "remote.storage.enable"


class OldReplica(NamedTuple):
    """The log of a partition on one old node."""

    view: LogView
    node: int  # its place among the old nodes
    last_epoch: int
    highest_epoch: int  # of any batch: one bit of a header is enough to make it wrong
    end_offset: int
    highest_producer_id: int
    is_in_sync: bool | None = None  # or eligible, as the old metadata says; None where none does
    is_assigned: bool = True  # whether the old metadata, where known, has its node as a replica
    is_doubtful: bool = False  # whether a copy may lack what was in the log
    open_since: int | None = None  # the first offset of a transaction that has not ended

    @property
    def position(self) -> tuple[int, int]:
        """The last epoch, and the end: of two replicas, the higher one is taken."""
        return self.last_epoch, self.end_offset

    @property
    def rank(self) -> tuple[bool, int, int, bool]:
        """The position, after whether it counts as a replica, and before whether it is whole."""
        return self.is_assigned, *self.position, not self.is_doubtful


class AdoptedTopic(NamedTuple):
    """A topic, and the replicas of each of its partitions, the best one first."""

    name: str
    topic_id: uuid.UUID | None
    replicas: dict[int, list[OldReplica]]
    image: TopicImage | None  # what the old metadata says


class Candidates(NamedTuple):
    """The logs of old disks that may count, and why others do not."""

    views: list[LogView]
    left_out: list[str]


def candidates(
    directories: Iterable[LogDirectory], nodes: Mapping[str, Node], image: MetadataImage | None
) -> Candidates:
    """Return the logs of partitions that may be served again.

    The metadata, where it is known, decides which ones a broker would set aside.
    """
    views: list[LogView] = []
    found = Candidates(views, [])
    known = {} if image is None else {each.name: each for each in image.topics}
    futures: list[LogView] = []
    for directory in directories:
        for view in directory:
            _choose(view, "", known, found)
        for other in directory.others:
            if other.state == FUTURE_DIR_SUFFIX:
                futures.append(LogView(other))
            else:
                found.left_out.append(f"{printable_location(other.path)} {_NOT_LIVE[other.state]}")
    live = views if futures else ()
    here = {(nodes[each.directory.log_directory], each.topic_partition) for each in live}
    for view in futures:
        is_alone = (nodes[view.directory.log_directory], view.topic_partition) not in here
        _choose(view, "" if is_alone else _FUTURE_BESIDE_LIVE, known, found)
    return found


_NOT_LIVE = {
    STRAY_DIR_SUFFIX: "was set aside by its broker",
    DELETE_DIR_SUFFIX: "was being deleted",
}
_FUTURE_BESIDE_LIVE = "was being made from the log beside it"


def _choose(view: LogView, reason: str, known: Mapping[str, TopicImage], found: Candidates) -> None:
    if view.topic_partition == CLUSTER_METADATA:
        return
    reason = reason or _why_not(view, known.get(view.topic))
    if reason:
        found.left_out.append(f"{printable_location(view.directory.path)} {reason}")
    else:
        found.views.append(view)


def _why_not(view: LogView, topic: TopicImage | None) -> str:
    """Return why a log is none of a topic's; "" if it is."""
    if not view.listing.segments:
        return "has no .log file"
    if topic is None:
        return ""
    topic_id = stored_topic_id(view)
    if topic_id not in (None, topic.topic_id):
        return (
            f"is of a topic with the id {format_uuid(topic_id)}, and the metadata has "
            f"{format_uuid(topic.topic_id)}"
        )
    if topic.partitions and view.partition not in topic.partitions:
        return f"is of a partition that the metadata does not have: {len(topic.partitions)} there"
    return ""


def adopted_topics(
    views: Iterable[LogView],
    nodes: Mapping[str, Node],
    image: MetadataImage | None,
    topics: Collection[str] | None,
    *,
    reads_followers: bool = True,
) -> list[AdoptedTopic]:
    """Return what log directories have of topics, sorted by name.

    Without ``reads_followers`` of a partition whose leader is here, in sync by the metadata, only
    the leader's log is read, unless that is damaged.
    """
    found: dict[str, list[LogView]] = defaultdict(list)
    for view in views:
        found[view.topic].append(view)
    known = {} if image is None else {each.name: each for each in image.topics}
    if topics is not None:
        ensure_known_topics(sorted(topics), {*found, *known})
    places = {node: place for place, node in enumerate(dict.fromkeys(nodes.values()))}
    recorded = {path: [offsets_in(path, name) for name in _REACHED] for path in nodes}

    def read(view: LogView, *, whole: bool) -> OldReplica:
        directory = view.directory.log_directory
        place = places[nodes[directory]]
        if not whole:
            return OldReplica(view, place, _NO_EPOCH, _NO_EPOCH, view.local_log_start_offset, -1)
        return _replica(view, place, recorded[directory])

    return [
        _adopted_topic(name, found[name], nodes, read, known.get(name), reads_followers)
        for name in sorted({*found, *known} if topics is None else topics)
    ]


def _adopted_topic(
    name: str,
    views: Sequence[LogView],
    nodes: Mapping[str, Node],
    read: Callable[..., OldReplica],
    image: TopicImage | None,
    reads_followers: bool,  # noqa: FBT001 - of the function above
) -> AdoptedTopic:
    if image is not None:
        ids = {image.topic_id}
    else:
        ids = {found for each in views if (found := stored_topic_id(each)) is not None}
    if len(ids) > 1:
        shown = " and ".join(sorted(map(format_uuid, ids)))
        where = printable_location(views[0].directory.path)
        reason = (
            f"topic {name} has the ids {shown} on these disks, so it was deleted and made again: "
            "give only the log directories of the one that is meant"
        )
        raise LogDirectoryError(reason, where)
    replicas: dict[int, list[OldReplica]] = defaultdict(list)
    leaders = {} if reads_followers or image is None else _leaders_here(views, nodes, image)

    def replica_of(view: LogView, *, whole: bool = False) -> OldReplica:
        node = nodes[view.directory.log_directory]
        registration = None if image is None else image.partitions.get(view.partition)
        replica = read(view, whole=whole or leaders.get(view.partition, node) is node)
        if registration is not None and node.node_id is not None:
            in_sync = {*registration.isr, *registration.eligible_leader_replicas}
            replica = replica._replace(
                is_in_sync=node.node_id in in_sync,
                is_assigned=node.node_id in registration.replicas,
            )
        return replica

    for view in views:
        replicas[view.partition].append(replica_of(view))
    for number in leaders:
        if len(replicas[number]) > 1 and any(each.is_doubtful for each in replicas[number]):
            replicas[number] = [replica_of(each.view, whole=True) for each in replicas[number]]
    numbers = set(replicas) | (set() if image is None else set(image.partitions))
    return AdoptedTopic(
        name,
        next(iter(ids), None),
        {
            number: sorted(replicas.get(number, ()), key=lambda each: each.rank, reverse=True)
            for number in range(max(numbers, default=-1) + 1)
        },
        image,
    )


def _leaders_here(
    views: Iterable[LogView], nodes: Mapping[str, Node], image: TopicImage
) -> dict[int, Node]:
    """Return the nodes that lead partitions, in sync, and whose logs of them are here."""
    found = {}
    for view in views:
        node = nodes[view.directory.log_directory]
        registration = image.partitions.get(view.partition)
        in_sync = () if registration is None else registration.isr
        if registration is not None and node.node_id == registration.leader in in_sync:
            found[view.partition] = node
    return found


def _replica(view: LogView, place: int, recorded: Recorded) -> OldReplica:
    """Read the headers of a log; what is damaged counts for nothing."""
    is_intact = True
    try:
        sums = _sums(view, _headers_of_intact_log(view))
    except CorruptRecordError:
        sound = view.with_damage(DamageReport(is_logged=False))
        sums = _sums(view, (each.window.headers for each in header_windows(sound)))
        is_intact = False
    try:
        entries = read_epoch_entries(join(view.directory.path, LEADER_EPOCH_CHECKPOINT))
    except LogStorageError:
        entries = []
    epoch = max([sums.epoch, *(e.epoch for e in entries if e.start_offset <= sums.end_offset)])
    return OldReplica(
        view,
        place,
        epoch,
        max(epoch, sums.highest_epoch),
        sums.end_offset,
        sums.producer_id,
        open_since=min(sums.open_transactions.values(), default=None),
        is_doubtful=not (is_intact and sums.is_gapless)
        or _is_doubtful(view, recorded, entries, sums),
    )


class _Sums(NamedTuple):
    """What the headers of a log say together."""

    epoch: int = _NO_EPOCH  # the last one
    highest_epoch: int = _NO_EPOCH
    end_offset: int = 0
    producer_id: int = -1  # the highest one
    is_gapless: bool = True
    open_transactions: Mapping[int, int] = MappingProxyType({})  # first offsets, by producer


def _sums(view: LogView, found: Iterable[BatchHeaders]) -> _Sums:
    open_transactions: dict[int, int] = {}
    sums = _Sums(end_offset=view.local_log_start_offset)
    for headers in found:
        offsets, last_offsets = headers.offsets, headers.last_offsets
        follows = offsets[0] == sums.end_offset and (offsets[1:] == last_offsets[:-1] + 1).all()
        sums = _Sums(
            int(headers.partition_leader_epochs[-1]),
            max(sums.highest_epoch, int(headers.partition_leader_epochs.max())),
            int(last_offsets[-1]) + 1,
            max(sums.producer_id, int(headers.producer_ids.max())),
            sums.is_gapless and bool(follows),
            open_transactions,
        )
        if headers.traits.any_has(TRANSACTIONAL_FLAG_MASK):
            _follow_transactions(headers, open_transactions)
    return sums


def _follow_transactions(headers: BatchHeaders, found: dict[int, int]) -> None:
    """Note by producer which transactions are open after these batches."""
    of = headers.select(headers.is_transactional)
    offsets, are_control = of.offsets.tolist(), of.is_control.tolist()
    for producer, offset, is_marker in zip(
        of.producer_ids.tolist(), offsets, are_control, strict=True
    ):
        if is_marker:
            found.pop(producer, None)
        else:
            found.setdefault(producer, offset)


def _is_doubtful(
    view: LogView, recorded: Recorded, entries: Sequence[EpochEntry], sums: _Sums
) -> bool:
    """Whether anything but the batches themselves says that there were more."""
    listing, place = view.listing, view.topic_partition
    ends = [
        *(each.get(place, 0) for each in recorded),
        *view.producer_snapshot_offsets,
        *(each.start_offset for each in entries),
    ]
    has_others = listing.base_offsets_without_log or listing.misnamed_logs
    starts = [recorded[_REACHED.index(LOG_START_OFFSET_CHECKPOINT)].get(place)]
    starts += [each.start_offset for each in entries[:1]]
    return (
        max(ends) > sums.end_offset
        or bool(has_others or listing.leftover_file_count)
        or any(each is not None and each < view.local_log_start_offset for each in starts)
    )


_REACHED = (*RECORDED, LOG_START_OFFSET_CHECKPOINT)


def foreseen_losses(
    replicas: Iterable[OldReplica], threads: int | None
) -> dict[str, list[tuple[int, int]]]:
    """Return the offsets that copies of replicas will lack, by the directories of the replicas.

    Only doubtful ones are read again. They are looked at as they are copied: those of a log
    directory together.
    """
    together: dict[str, list[str]] = defaultdict(list)
    for each in replicas:
        if each.is_doubtful:
            together[each.view.directory.log_directory].append(each.view.directory.path)
    found: dict[str, list[tuple[int, int]]] = {}
    for paths in together.values():
        found |= missing_in_copy(paths, threads=threads)
    return found


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


def ensure_all_copied(summary: RepairSummary) -> None:
    """Refuse to declare partitions of which no copy was made."""
    for partition, reason in summary.unreadable.items():
        raise LogDirectoryError(f"{partition} cannot be copied: {reason}", summary.directory)


def has_holes(repaired: RepairedPartition) -> bool:
    """Whether a copy lacks offsets below its end, which a follower would never fetch again."""
    return any(start < repaired.end_offset for start, _ in repaired.missing)


def followers_foreseen(copies: Iterable[int]) -> Iterator[str]:
    """Yield what a dry run cannot know of copies of followers, by how many each partition has."""
    if any(each > 1 for each in copies):
        yield (
            "the run checks copies of followers while it makes them: it leaves out a copy that "
            "lacks records, and that node fetches the whole log from the leader"
        )


def left_out_notes(names: Sequence[str]) -> Iterator[str]:
    """Yield a sentence about the copies of followers that are left out for that."""
    if names:
        yield (
            f"{named(names, _SHOWN)}: what is damaged there would stay missing, so the copy is "
            "left out, and the node fetches all of the log from its leader"
        )


def is_unproven(replicas: Sequence[OldReplica]) -> bool:
    """Whether none of the replicas that were given has all acknowledged records for sure."""
    return bool(replicas) and not any(each.is_in_sync is not False for each in replicas)


def unproven_text(names: Sequence[str]) -> str:
    """Return a sentence about partitions of which that is so."""
    return (
        f"{named(names, _SHOWN)}: no replica that was in sync was given, and records "
        "that only the others had are lost"
    )


class OldDisks:
    """The old disks."""

    def __init__(
        self,
        paths: Sequence[str | os.PathLike[str]],
        topics: Iterable[str] | None,
        *,
        reads_followers: bool = True,
    ) -> None:
        self._paths = paths
        found = opened(paths)
        whole = {location(each).rstrip("/") for each in paths}
        parts = [
            path
            for path, (directory, _) in zip(paths, found, strict=True)
            if directory not in whole
        ]
        for path, _ in found:
            if not is_remote(path):
                ensure_not_in_use(path)
                ensure_nothing_unfinished(path)
        by_path = nodes_of(path for path, _ in found)
        ensure_one_cluster(by_path)
        self.nodes = list(dict.fromkeys(by_path.values()))
        self.copies, self.errors = find_copies(self.nodes)
        self.copies = [each for each in self.copies if each.end_offset]
        self._seed, self.metadata = furthest_metadata(self.copies, self.errors)
        given = [each for path, each in found if path in whole]
        chosen = candidates([*given, *map(open_directory, parts)], by_path, self.image)
        self.left_out = chosen.left_out
        names = None if topics is None else list(topics)
        if names is None and not given:
            names = sorted({each.topic for each in chosen.views})  # those of the partitions given
        known = adopted_topics(
            chosen.views, by_path, self.image, names, reads_followers=reads_followers
        )
        self.topics = [self._with_all_partitions(each) for each in known]

    def _with_all_partitions(self, topic: AdoptedTopic) -> AdoptedTopic:
        """Add partitions that a topic of coordinators has had, as the ids in the others say."""
        if topic.image is not None or topic.name not in _OF_COORDINATORS:
            return topic
        ids = {
            number: _ids_in(replicas[0].view)
            for number, replicas in topic.replicas.items()
            if replicas
        }
        count = likely_count(len(topic.replicas), ids)
        more: dict[int, list[OldReplica]] = {
            number: [] for number in range(len(topic.replicas), count)
        }
        return topic._replace(replicas={**topic.replicas, **more})

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

    def notes(self) -> list[str]:
        """Return sentences about what the disks have, or may have had, and is not taken."""
        found = [f"{named(self.left_out, _SHOWN)}: left out"] if self.left_out else []
        for path in dict.fromkeys(path for node in self.nodes for path in node.disks.metas):
            found += [
                f"{printable_location(each.path)} cannot be read, and what it says of logs is not "
                f"known: {each.message}"
                for each in unreadable_checkpoints(path)
            ]
        for each in self.copies:
            found += cut_metadata(each)
        if self.image is not None:
            found += _notes_of_metadata(self.image, self.topics)
        return found

    @cached_property
    def _listing(self) -> GroupListing | None:
        if all(each.name != CONSUMER_OFFSETS_TOPIC for each in self.topics):
            return None
        try:
            return groups(*self._paths)
        except (LogStorageError, UnknownTopicOrPartitionError):  # which other findings tell
            return None

    def expiring_groups(self) -> list[str]:
        """Return the groups with committed offsets that a broker deletes for their age."""
        found = [] if self._listing is None else self._listing.groups
        return [each.group_id for each in found if any(one.will_expire for one in each.offsets)]

    def groups_behind(self, ends: Mapping[TopicPartition, int]) -> list[str]:
        """Return a sentence about groups whose positions are after the ends of logs."""
        found = [] if self._listing is None else groups_behind(self._listing, ends)
        names = [
            f"{each.group_id} at offset {each.before} of {each.topic}-{each.partition}, which ends "
            f"at {each.offset}"
            for each in found
        ]
        text = "the position of {} is lost: auto.offset.reset decides where the group resumes"
        return [text.format(named(names, _SHOWN))] if names else []

    def left_behind(self, levels: Mapping[str, int]) -> list[str]:
        """Return sentences about metadata that does not come along to a cluster of some levels."""
        if self.image is None or self._seed is None:
            return []
        known = {each.name for each in self.image.topics}
        others = [each.name for each in self.topics if each.name not in known]
        found = []
        if others:
            found.append(
                f"{named(others, _SHOWN)}: the old metadata does not have it, so it was deleted, "
                "or is newer than they are"
            )
        left = bound_records(metadata_values(self._seed.view))
        if left:
            found.append(f"{named(left, _SHOWN)} of the old cluster does not come along")
        lower = [
            f"{name} was {level} in the old cluster and is {levels.get(name, 0)} here"
            for name, level in sorted(self.image.features.items())
            if name not in _OF_ALL and levels.get(name, 0) < level
        ]
        return [*found, *(f"{each}: raise it (kafka-features.sh)" for each in lower)]

    def access_records(self, there: Iterable[bytes]) -> list[bytes]:
        """Return the records about access that the old metadata has and others lack."""
        if self._seed is None:
            return []
        old = access_records(metadata_values(self._seed.view))
        known = access_records(there)
        return [value for key, value in old.items() if key not in known]


def _notes_of_metadata(image: MetadataImage, topics: Iterable[AdoptedTopic]) -> Iterator[str]:
    tiered = [
        each.name
        for each in topics
        if each.image is not None and each.image.configs.get(_REMOTE) == "true"
    ]
    if tiered:
        yield (
            f"{named(tiered, _SHOWN)} has {_REMOTE}=true: brokers start only with "
            "remote.log.storage.system.enable=true, and what is in remote storage alone is served "
            "only from the same storage, under the same topic id"
        )
    if image.unknown_types:
        types = ", ".join(map(str, sorted(image.unknown_types)))
        yield f"records of the old metadata are not understood, and not used (types {types})"


def open_transactions(
    replicas: Mapping[TopicPartition, OldReplica | None], unfinished: Iterable[TopicPartition]
) -> list[str]:
    """Return sentences about transactions that no coordinator will end.

    ``replicas`` has the leaders of partitions; ``unfinished`` are those whose transactions the
    coordinators of the new cluster cannot know.
    """
    text = (
        "{}: a transaction is open since offset {}, and no coordinator will end it: readers of "
        "committed records stop there until kafka-transactions.sh aborts it"
    )
    return [
        text.format(place, replica.open_since)
        for place in unfinished
        if (replica := replicas[place]) is not None and replica.open_since is not None
    ]


_MOST_PARTITIONS = 1000
_DEFAULT_COUNT = 50  # offsets.topic.num.partitions, transaction.state.log.num.partitions
_LOOKED_AT = 1000
_OF_COORDINATORS = (CONSUMER_OFFSETS_TOPIC, TRANSACTION_STATE_TOPIC)


def likely_count(known: int, ids: Mapping[int, Collection[str]]) -> int:
    """Return how many partitions put ids where they are: as many as are known, if that does.

    ``known`` also where none does, since the number was raised.
    """

    def fits(count: int) -> bool:
        return all(
            partition_for(each, count) == number for number, names in ids.items() for each in names
        )

    wanted = [known, *(each for each in (_DEFAULT_COUNT,) if each > known)]
    return next(filter(fits, [*wanted, *range(known + 1, _MOST_PARTITIONS + 1)]), known)


def _ids_in(view: LogView) -> set[str]:
    """Return the first ids in the keys of a coordinator's log: after the version, in all of them.

    Source: OffsetCommitKey, GroupMetadataKey, ConsumerGroupMetadataKey, TransactionLogKey (4.4).
    """
    found: set[str] = set()
    with suppress(LogStorageError):
        for record in islice(coordinator_records(view), _LOOKED_AT):
            key = record.key or b""
            length = int.from_bytes(key[2:4], "big")
            found.add(key[4 : 4 + length].decode(errors="replace"))
    return found - {""}
