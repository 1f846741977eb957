"""`plan_for_running`: partitions on old disks, made ready for a broker of a running cluster.

Nothing of the cluster is changed here, and its log directory is only read. Its own tools make the
topic, with the broker as its only replica: any other replica would be empty, would lead while the
broker is stopped, and would have it delete what was put in. The copy of a partition then has

* the topic id that the cluster has given;
* the leader epoch that the partition has now in all its batches: a broker whose metadata has a
  lower one than the batches drops the history of epochs (the epoch is outside the checksum);
* producer ids above all that a controller gives out, so that no new producer is taken for an old
  one; transactions and their markers stay together;
* neither indexes nor snapshots: the broker makes them anew at its start.

Source: LogLoader.loadSegmentFiles, ProducerStateManager (Kafka 4.4).
"""

from __future__ import annotations

import json
import os
import shutil
import struct
from typing import TYPE_CHECKING, NamedTuple

from pylog.checks.repair import write_repaired_copy
from pylog.errors import LogDirectoryError
from pylog.files.checkpoint_file import known_offset_checkpoint
from pylog.files.durable_io import DurableIO
from pylog.files.file_names import (
    LEADER_EPOCH_CHECKPOINT,
    LOG_FILE_SUFFIX,
    LOG_START_OFFSET_CHECKPOINT,
    PARTITION_METADATA,
)
from pylog.files.free_space import NeededSpace, ensure_space, log_space
from pylog.files.leader_epochs import EpochEntry, write_leader_epoch_checkpoint
from pylog.files.partition_metadata import format_uuid, write_partition_metadata
from pylog.files.storage import list_directory, open_file
from pylog.locations import join, name_of, parent_of, printable_location
from pylog.model import TopicPartition
from pylog.native.checksum import crc32c
from pylog.reading.log_directory import open_directory
from pylog.recovery.adopted_topics import (
    OldDisks,
    ensure_all_copied,
    foreseen_losses,
    is_unproven,
    open_transactions,
    unproven_text,
)
from pylog.recovery.adoption_summary import AdoptedPartition, AdoptionSummary
from pylog.recovery.cluster_info import ensure_one_cluster, opened
from pylog.recovery.metadata_copies import find_copies, metadata_of, seed_of
from pylog.text.words import named, offsets_text
from pylog.writing.new_log_directory import ensure_apart, ensure_new, new_log_directory
from pylog.writing.node import nodes_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from pylog.internal_topics.metadata_image import TopicImage
    from pylog.recovery.adopted_topics import AdoptedTopic, OldReplica

_INTERNAL = "__"
_MAGIC_AT, _V2, _LOG_OVERHEAD = 16, 2, 12
_EPOCH = struct.Struct(">i")
_LENGTH = struct.Struct(">i")
_CRC = struct.Struct(">I")
_PRODUCER_ID = struct.Struct(">q")
_LENGTH_AT, _EPOCH_AT, _CRC_AT, _CHECKED_FROM, _PRODUCER_AT = 8, 12, 17, 21, 43
PRODUCER_SHIFT = 1 << 40
"""What is added to producer ids. A controller that gave out a million a second would take twelve
days to come as far."""


class _Ready(NamedTuple):
    """A partition whose copy can be put into the broker."""

    source: OldReplica
    topic: TopicImage
    target: TopicPartition
    place: str  # of the broker's empty directory
    leader_epoch: int


def plan_for_running(  # noqa: PLR0913 - keyword-only options, one for each thing a user may say
    *paths: str | os.PathLike[str],
    running: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    into: str | os.PathLike[str],
    topics: Iterable[str] | None = None,
    rename: Mapping[str, str] | None = None,
    threads: int | None = None,
    dry_run: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> AdoptionSummary:
    """Make partitions on old disks ready for a broker of a running cluster; say how they get there.

    Call it twice: while the cluster does not have the topics, nothing is written, and the steps are
    the calls of Kafka's tools that make them.

    Parameters
    ----------
    *paths
        Log directories of the old nodes, or backups of them. They are not changed.
    running
        The log directories of a broker of the running cluster. They are only read.
    into
        The directory that gets the copies: it does not exist, or is empty.
    topics
        Only these; None for all but Kafka's own.
    rename
        Names in the running cluster, by the old one.
    threads, progress
        As of `doctor`.
    dry_run
        Whether nothing is written.

    Returns
    -------
    AdoptionSummary
        What was made ready, and the steps that are left.

    Raises
    ------
    LogDirectoryError
        Refused: the running cluster has records in such a topic, or other replicas of it; its
        metadata is not in ``running``; or ``into`` is not empty. Nothing was written.
    LogLockedError
        A broker runs on one of the old log directories.
    KafkaStorageError
        The copies could not be written; nothing is left of them.

    Examples
    --------
    >>> plan = pylog.jobs.plan_for_running("kafka/intact", running="kafka/damaged", into="ready",
    ...                                    topics=["orders"], rename={"orders": "old-orders"})
    >>> plan.is_written, plan.steps[0].split(" --topic ")[1].partition(" --config ")[0]
    (False, 'old-orders --replica-assignment 1,1')
    """
    place = ensure_new(into)
    directories = [running] if isinstance(running, str | os.PathLike) else list(running)
    for path in [*paths, *directories]:
        ensure_apart(place, os.fspath(path))
    source = OldDisks(paths, topics)
    chosen = [each for each in source.topics if topics is not None or not _is_internal(each.name)]
    internal = [each.name for each in chosen if _is_internal(each.name)]
    if internal:
        reason = (
            f"{internal[0]} is Kafka's own, and a running cluster has one: for positions of groups "
            "use restore-groups on a stopped node, or kafka-consumer-groups.sh --reset-offsets"
        )
        raise LogDirectoryError(reason, place)
    plan = _RunningPlan(directories, chosen, dict(rename or {}))
    is_ready = not plan.missing and bool(plan.ready)
    is_written = is_ready and not dry_run
    if is_written:
        plan.write(place, threads, progress)
    elif is_ready:
        plan.foresee(threads)
    return AdoptionSummary(
        into=[place],
        cluster_id=plan.cluster_id,
        is_written=is_written,
        topic_ids={each.topic.name: format_uuid(each.topic.topic_id) for each in plan.ready},
        partitions=plan.described(place),
        appended=None,
        snapshot=None,
        losses=plan.losses() if is_ready else [],
        notes=[*source.notes(), *plan.notes(is_ready=is_ready)],
        steps=plan.steps(place) if is_ready else plan.steps_before(),
    )


def _is_internal(topic: str) -> bool:
    return topic.startswith(_INTERNAL)


class _RunningPlan:
    """What the running cluster has, and what goes where."""

    def __init__(
        self,
        directories: Sequence[str | os.PathLike[str]],
        topics: Sequence[AdoptedTopic],
        rename: dict[str, str],
    ) -> None:
        found = dict(opened(directories))
        by_path = nodes_of(found)
        ensure_one_cluster(by_path)
        nodes = list(dict.fromkeys(by_path.values()))
        self._first = printable_location(next(iter(found)))
        if len(nodes) != 1 or nodes[0].node_id is None:
            raise self._refusal("give the log directories of one broker of the running cluster")
        copies, errors = find_copies(nodes)
        if errors:
            raise errors[0]
        if not copies:
            raise self._refusal("none of these log directories has the metadata of the cluster")
        self.cluster_id = nodes[0].cluster_id
        self._broker = nodes[0].node_id
        image = metadata_of(seed_of(copies), copies).image
        self._empty = {
            view.topic_partition: view.directory.path
            for views in found.values()
            for view in views
            if not view.directory.state
        }
        unknown = sorted(set(rename) - {each.name for each in topics})
        if unknown:
            msg = f"topic {unknown[0]} is to be renamed, and is none of those that are adopted"
            raise ValueError(msg)
        self.missing: list[tuple[str, AdoptedTopic]] = []
        self.ready: list[_Ready] = []
        self._missing_offsets: dict[TopicPartition, list[tuple[int, int]]] = {}
        self._nowhere: list[TopicPartition] = []
        self._unproven: list[TopicPartition] = []
        self._starts: dict[TopicPartition, int] = {}
        known = {each.name: each for each in image.topics}
        for topic in topics:
            name = rename.get(topic.name, topic.name)
            if name in known:
                self.ready += self._partitions(topic, known[name])
            else:
                self.missing.append((name, topic))

    def _refusal(self, reason: str) -> LogDirectoryError:
        return LogDirectoryError(reason, self._first)

    def _partitions(self, topic: AdoptedTopic, there: TopicImage) -> list[_Ready]:
        found = []
        for number, replicas in topic.replicas.items():
            target = TopicPartition(there.name, number)
            registration = there.partitions.get(number)
            if registration is None:
                raise self._refusal(
                    f"topic {there.name} has {len(there.partitions)} partitions in the running "
                    f"cluster, and {len(topic.replicas)} on the old disks: make as many"
                )
            if registration.replicas != (self._broker,):
                shown = ", ".join(map(str, registration.replicas))
                raise self._refusal(
                    f"{target} has its replicas on {shown}: the others lead while broker "
                    f"{self._broker} is stopped, and have it delete what was put in. Move it to "
                    f"{self._broker} alone (kafka-reassign-partitions.sh), and add replicas after"
                )
            place = self._empty.get(target)
            if place is None:
                raise self._refusal(
                    f"{target} is in none of these log directories: give all of broker "
                    f"{self._broker}"
                )
            if open_directory(place)[target].log_end_offset:
                raise self._refusal(
                    f"{target} has records in the running cluster: adopt the old ones under "
                    "another name (rename)"
                )
            if not replicas:
                self._nowhere.append(target)
                continue
            if is_unproven(replicas):
                self._unproven.append(target)
            found.append(_Ready(replicas[0], there, target, place, registration.leader_epoch))
        return found

    # Writing.

    def foresee(self, threads: int | None) -> None:
        """Find out what the copies will lack, without making them."""
        missing = foreseen_losses([each.source for each in self.ready], threads)
        for each in self.ready:
            path = each.source.view.directory.path
            self._missing_offsets[each.target] = missing.get(path, [])

    def write(
        self, place: str, threads: int | None, progress: Callable[[int, int], None] | None
    ) -> None:
        """Write the copies: an intact one of each log, from which the one to be put in is made."""
        sizes = [each.source.view.size_bytes for each in self.ready]
        ensure_space(NeededSpace(place, log_space(2 * each)) for each in sizes)
        io = DurableIO()
        with new_log_directory(place) as working:
            together: dict[str, list[_Ready]] = {}
            for each in self.ready:
                directory = each.source.view.directory.log_directory
                together.setdefault(directory, []).append(each)
            for number, group in enumerate(together.values()):
                copy = join(working, f"copy.{number}")  # no partition's name
                self._write_group(io, group, copy, working, threads, progress)

    def _write_group(
        self,
        io: DurableIO,
        group: Sequence[_Ready],
        copy: str,
        working: str,
        threads: int | None,
        progress: Callable[[int, int], None] | None,
    ) -> None:
        paths = [each.source.view.directory.path for each in group]
        by_source = {each.source.view.topic_partition: each for each in group}
        try:
            summary = write_repaired_copy(paths, copy, threads=threads, progress=progress)
            ensure_all_copied(summary)
            for repaired in summary.partitions:
                ready = by_source[repaired.topic_partition]
                self._missing_offsets[ready.target] = repaired.missing
                offsets = known_offset_checkpoint(
                    join(parent_of(repaired.path), LOG_START_OFFSET_CHECKPOINT)
                )
                start = offsets.get(repaired.topic_partition)
                if start:
                    self._starts[ready.target] = start
                _write_ready(io, repaired.path, join(working, str(ready.target)), ready)
        finally:
            shutil.rmtree(copy, ignore_errors=True)

    # What is said of it.

    def described(self, place: str) -> list[AdoptedPartition]:
        """Return the partitions that were made ready."""
        return [
            AdoptedPartition(
                each.target.topic,
                each.target.partition,
                printable_location(each.source.view.directory.path),
                [self._broker],
                [join(place, str(each.target))],
                each.leader_epoch,
                each.source.end_offset,
                self._missing_offsets.get(each.target, []),
            )
            for each in self.ready
        ]

    def losses(self) -> list[str]:
        """Return sentences about records that the copies lack."""
        found = [f"{each}: no disk has it, and it stays empty" for each in self._nowhere]
        found += [unproven_text(list(map(str, self._unproven)))] if self._unproven else []
        return found + [
            f"{partition}: {named([offsets_text(start, end) for start, end in missing])} are lost"
            for partition, missing in self._missing_offsets.items()
            if missing
        ]

    def notes(self, *, is_ready: bool) -> list[str]:
        """Return other sentences for the user."""
        found = []
        if not is_ready:
            found.append("the cluster does not have all topics: make them, and call this again")
        highest = max((each.source.highest_producer_id for each in self.ready), default=-1)
        leaders = {each.target: each.source for each in self.ready}
        found += open_transactions(leaders, leaders)
        if highest >= 0:
            found.append(
                f"{PRODUCER_SHIFT} is added to producer ids, so that none is given to a new "
                "producer; transactions stay as they are"
            )
        return found

    def steps_before(self) -> list[str]:
        """Return the calls that make the topics."""
        return [_creation(name, topic, self._broker) for name, topic in self.missing]

    def steps(self, place: str) -> list[str]:
        """Return how the copies get into the broker."""
        names = list(dict.fromkeys(each.topic.name for each in self.ready))
        steps = [
            f"stop producers and consumers of {named(names)}, and broker {self._broker} in order"
        ]
        for each in self.ready:
            aside = f"{parent_of(each.place).rstrip('/')}.empty-{name_of(each.place)}"
            copy = join(place, str(each.target))
            steps.append(f"mv {each.place} {aside} && cp -a {copy} {each.place}")
        steps += [
            "give the new files to the user that the broker runs as",
            f"start broker {self._broker}",
        ]
        if self._starts:
            offsets = [
                {"topic": at.topic, "partition": at.partition, "offset": start}
                for at, start in self._starts.items()
            ]
            document = json.dumps({"version": 1, "partitions": offsets})
            steps.append(
                f"echo '{document}' > starts.json && kafka-delete-records.sh --bootstrap-server "
                "HOST:PORT --offset-json-file starts.json"
            )
        steps.append("kafka-reassign-partitions.sh adds the other replicas")
        return steps


def _creation(name: str, topic: AdoptedTopic, broker: int) -> str:
    assignment = ",".join([str(broker)] * len(topic.replicas))
    configs = {} if topic.image is None else topic.image.configs
    more = "".join(f" --config {key}={value}" for key, value in configs.items())
    return (
        f"kafka-topics.sh --bootstrap-server HOST:PORT --create --topic {name} "
        f"--replica-assignment {assignment}{more}"
    )


def _write_ready(io: DurableIO, source: str, target: str, ready: _Ready) -> None:
    """Copy a partition with another topic id, leader epoch and producer ids."""
    io.make_directory(target)
    first = None
    for entry in sorted(list_directory(source), key=lambda each: each.name):
        if entry.name.endswith(LOG_FILE_SUFFIX):
            if first is None:
                first = int(entry.name.removesuffix(LOG_FILE_SUFFIX))
            _write_log(io, entry.path, join(target, entry.name), ready.leader_epoch)
    epochs = [EpochEntry(ready.leader_epoch, first or 0)]
    write_leader_epoch_checkpoint(io, join(target, LEADER_EPOCH_CHECKPOINT), epochs)
    write_partition_metadata(io, join(target, PARTITION_METADATA), ready.topic.topic_id)
    io.sync_directory(target)


def _write_log(io: DurableIO, source: str, target: str, leader_epoch: int) -> None:
    """Copy a segment batch by batch; each has been found sound."""
    with open_file(source) as log, io.open(target, create=True) as copy:
        position, size = 0, log.size()
        while position < size:
            length = _LENGTH.unpack_from(log.read_at(position + _LENGTH_AT, _LENGTH.size))[0]
            batch = bytearray(log.read_at(position, _LOG_OVERHEAD + length))
            if batch[_MAGIC_AT] == _V2:
                _change(batch, leader_epoch)
            copy.write_at(position, batch)
            position += len(batch)
        copy.sync()


def _change(batch: bytearray, leader_epoch: int) -> None:
    _EPOCH.pack_into(batch, _EPOCH_AT, leader_epoch)
    producer_id = _PRODUCER_ID.unpack_from(batch, _PRODUCER_AT)[0]
    if producer_id >= 0:
        _PRODUCER_ID.pack_into(batch, _PRODUCER_AT, producer_id + PRODUCER_SHIFT)
        _CRC.pack_into(batch, _CRC_AT, crc32c(memoryview(batch)[_CHECKED_FROM:]))
