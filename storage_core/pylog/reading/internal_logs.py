"""The logs of Kafka's own topics: a coordinator's records, and what ``__cluster_metadata`` says.

A snapshot, ``<end offset>-<epoch>.checkpoint``, is a file of batches that stands for all records
below its end offset; records below one may be gone from the log. The oldest that the log follows on
is taken: of what was deleted since then, the log still has the records.

Nothing on a disk tells up to which offset the controllers have agreed. This is known without it:

* A snapshot holds only records that they had agreed on.
* A controller that is the only voter agrees with itself: whatever is in its log counts, and in the
  log of each broker that follows it.

Where there are several voters, the records after the newest snapshot may be taken back: what they
change is named in `CommittedMetadata.undecided`, and whoever acts on it would be guessing. Who the
voters are is said by records of the log or snapshot (KIP-853), else by ``quorum-state``, else by
the last change of leader.

Source: Snapshots, KafkaMetadataLog, KafkaRaftClient, LeaderState.highWatermark,
RecordsSnapshotReader (Kafka 4.3); KIP-595, KIP-630, KIP-853.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from pylog.errors import CorruptRecordError, InvalidRecordError, LogDirectoryError
from pylog.files.file_names import LEADER_EPOCH_CHECKPOINT, METADATA_SNAPSHOT
from pylog.files.leader_epochs import read_epoch_entries
from pylog.files.partition_metadata import format_uuid
from pylog.files.quorum_state import QUORUM_STATE, read_quorum_state
from pylog.files.storage import list_directory, open_file
from pylog.internal_topics.control_messages import control_fields
from pylog.internal_topics.metadata_image import MetadataImage, endpoint_of
from pylog.locations import join, printable_location
from pylog.log_file.segment_windows import SegmentWindows
from pylog.model import ControlRecordType, TopicPartition
from pylog.reading.checked_windows import CheckedWindows
from pylog.reading.log_directory import LogDirectory
from pylog.reading.log_end import find_log_end
from pylog.reading.scan import scan
from pylog.reading.slicing import open_slice, segment_slices
from pylog.record.batch_header import HEADER_SIZE_UP_TO_MAGIC, peek_entry_size
from pylog.record.control_record import parse_control_record_type
from pylog.record.record_batch import RecordBatch

if TYPE_CHECKING:
    import uuid
    from collections.abc import Callable, Collection, Iterator

    from pylog.internal_topics.metadata_image import ConfigResource, Endpoint
    from pylog.reading.log_view import LogView
    from pylog.record.batch_scan import Window
    from pylog.record.record import Record


_COLUMNS = ("key", "value", "offset", "timestamp", "batch")


class StoredRecord(NamedTuple):
    """A record of a coordinator; ``timestamp`` in ms, -1 for none."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    producer_id: int | None


def coordinator_records(view: LogView) -> Iterator[StoredRecord]:
    """Yield the records of one partition in offset order, those of any transaction included."""
    directory = LogDirectory([view.directory], views={view.topic_partition: view})
    records = scan(directory, topics=[view.topic], columns=_COLUMNS, timestamp_unit="ms")
    for batch in records.to_batches():
        metadata = batch.column("batch")
        producers = metadata.field("producerId").to_pylist()
        are_transactional = metadata.field("isTransactional").to_pylist()
        yield from map(
            StoredRecord,
            batch.column("offset").to_pylist(),
            batch.column("timestamp").cast("int64").to_pylist(),
            batch.column("key").to_pylist(),
            batch.column("value").to_pylist(),
            [
                producer_id if is_transactional else None
                for producer_id, is_transactional in zip(producers, are_transactional, strict=True)
            ],
        )


CLUSTER_METADATA = TopicPartition("__cluster_metadata", 0)

_LOGGER = logging.getLogger(__name__)


class MissingOffsetsError(InvalidRecordError):
    """Offsets are missing in a log of the metadata; what a node makes of that varies."""


class MetadataSnapshot(NamedTuple):
    """A snapshot: the offset after the last record that it stands for, that record's epoch."""

    end_offset: int
    epoch: int
    path: str


class Voter(NamedTuple):
    """A voter in a VotersRecord (KIP-853)."""

    voter_id: int
    directory_id: uuid.UUID
    endpoints: tuple[Endpoint, ...]


class MetadataBatch(NamedTuple):
    """The records of a batch, and whether they are control records."""

    is_control: bool
    records: tuple[Record, ...]


def metadata_snapshots(view: LogView) -> list[MetadataSnapshot]:
    """Return the snapshots beside a log, the oldest first."""
    found = []
    for entry in list_directory(view.directory.path):
        match = METADATA_SNAPSHOT.fullmatch(entry.name)
        if match is not None:
            found.append(MetadataSnapshot(int(match[1]), int(match[2]), entry.path))
    return sorted(found)


def usable_snapshots(view: LogView) -> list[MetadataSnapshot]:
    """Return the snapshots that the log follows on, the oldest first; none if it is whole."""
    start = view.local_log_start_offset
    usable = [each for each in metadata_snapshots(view) if each.end_offset >= start]
    if start > 0 and not usable:
        path = printable_location(view.directory.path)
        reason = (
            f"the log of the cluster's metadata begins at offset {start}, and no snapshot "
            f"(<offset>-<epoch>.checkpoint) of that offset or a later one is here"
        )
        raise LogDirectoryError(reason, path)
    return usable


def is_behind(view: LogView, newest: MetadataSnapshot) -> bool:
    """Whether the log does not reach its newest snapshot: then a node deletes the log.

    Source: KafkaMetadataLog.truncateToLatestSnapshot (Kafka 4.3).
    """
    return (latest_epoch(view), view.log_end_offset) < (newest.epoch, newest.end_offset)


def latest_epoch(view: LogView) -> int:
    """Return the leader epoch at the end of the log, 0 if there is none.

    A node scans this log at each start. So it knows the epochs of batches that the checkpoint
    lacks, and drops those of the checkpoint that begin after the end.
    """
    path = join(view.directory.path, LEADER_EPOCH_CHECKPOINT)
    end = view.log_end_offset
    stored = [each.epoch for each in read_epoch_entries(path) if each.start_offset < end]
    latest = stored[-1] if stored else 0
    for segment in reversed(view.segments):
        last = (view.end if segment is view.segments[-1] else find_log_end(segment)).last
        if last is not None:
            return max(latest, last.header.partition_leader_epoch)
    return latest


def has_footer(snapshot: MetadataSnapshot) -> bool:
    """Read a whole snapshot, and return whether it ends with its footer."""
    kind = None
    batches = list(snapshot_batches(snapshot, ignores_torn_end=True))
    if not batches:
        reason = "this snapshot has no batch"
        raise CorruptRecordError(reason, snapshot.path)
    for batch in batches:
        is_marked = batch.is_control and batch.records
        kind = parse_control_record_type(batch.records[-1].key) if is_marked else None
    return kind is ControlRecordType.SNAPSHOT_FOOTER


def _no_footer(snapshot: MetadataSnapshot) -> CorruptRecordError:
    reason = "this snapshot does not end with its footer: its last batches are missing"
    return CorruptRecordError(reason, snapshot.path)


def metadata_values(view: LogView) -> Iterator[bytes | None]:
    """Yield the values of the metadata records, in order; control records are left out."""
    start = view.local_log_start_offset
    end = view.log_end_offset
    usable = usable_snapshots(view)
    if usable:
        newest = usable[-1]
        if not has_footer(newest):
            raise _no_footer(newest)
        if is_behind(view, newest):
            usable, end = [newest], newest.end_offset
        oldest, values = _oldest_sound(usable)
        yield from values
        start = oldest.end_offset
    if start >= end:
        return
    directory = LogDirectory([view.directory], views={view.topic_partition: view})
    records = scan(directory, topics=[view.topic], start=start, columns=["value"])
    for batch in records.to_batches():
        yield from batch.column(0).to_pylist()


def _oldest_sound(
    snapshots: list[MetadataSnapshot],
) -> tuple[MetadataSnapshot, list[bytes | None]]:
    """Return the first snapshot that is not damaged, and its values; the last one is not."""
    for snapshot in snapshots:
        try:
            batches = [each for each in snapshot_batches(snapshot) if not each.is_control]
        except CorruptRecordError as error:
            if snapshot == snapshots[-1]:
                raise
            _LOGGER.warning("a newer snapshot is taken, since one is damaged: %s", error)
        else:
            return snapshot, [record.value for each in batches for record in each.records]
    raise AssertionError  # there is one


def snapshot_batches(
    snapshot: MetadataSnapshot, *, ignores_torn_end: bool = False
) -> Iterator[MetadataBatch]:
    """Yield the batches of a snapshot, control batches among them.

    A node ignores a last batch that is cut short, but not an only one.

    Source: RecordsIterator.nextBatch (Kafka 4.3).
    """
    is_first = True
    with open_file(snapshot.path) as source:
        size = source.size()
        windows = SegmentWindows(source, 0, size)
        for window in windows:
            yield from batches_in(window, snapshot.path)
            is_first = False
        is_torn = windows.tail.defect is None and not is_first
        if windows.tail.position < size and not (is_torn and ignores_torn_end):
            reason = windows.tail.defect or "the last batch of this snapshot is cut short"
            raise CorruptRecordError(reason, snapshot.path, windows.tail.position)


def bootstrap_image(path: str) -> MetadataImage:
    """Return the metadata image of a ``bootstrap.checkpoint``.

    As a broker, it verifies no checksum, and ignores a last batch that is cut short.

    Source: BootstrapDirectory.read, BatchFileReader (Kafka 4.3).
    """
    image = MetadataImage()
    for value in bootstrap_values(path):
        image.apply(value)
    return image


def bootstrap_values(path: str) -> Iterator[bytes | None]:
    """Yield the values of the records in a ``bootstrap.checkpoint``, as `bootstrap_image` does."""
    with open_file(path) as source:
        size = source.size()
        windows = SegmentWindows(source, 0, size)
        for window in windows:
            for position in window.headers.positions.tolist():
                batch = RecordBatch(window.buffer.data[position:])
                for record in batch.records():
                    if not batch.header.is_control_batch:
                        yield record.value
        rest = source.read_at(windows.tail.position, HEADER_SIZE_UP_TO_MAGIC + 1)
    if len(rest) > HEADER_SIZE_UP_TO_MAGIC:  # a broker does not look at less
        peek_entry_size(rest)  # raises unless a batch begins here


def batches_in(window: Window, path: str) -> Iterator[MetadataBatch]:
    """Yield the batches of a window of a file, each with a right checksum."""
    buffer = window.buffer.data
    for position in window.headers.positions.tolist():
        try:
            batch = RecordBatch(buffer[position:])
            batch.ensure_valid()
            yield MetadataBatch(batch.header.is_control_batch, tuple(batch.records()))
        except (CorruptRecordError, InvalidRecordError) as error:
            at = window.file_position + position
            raise CorruptRecordError(error.reason, path, at) from error


@dataclass(frozen=True, slots=True)
class CommittedMetadata:
    """The committed metadata of a cluster."""

    path: str
    image: MetadataImage
    committed_end_offset: int
    end_offset: int
    undecided: frozenset[ConfigResource]
    undecided_replicas: frozenset[TopicPartition]
    voters: frozenset[int]
    voter_set: tuple[Voter, ...] = ()
    """Those that a VotersRecord names; empty where the nodes' configuration does."""
    kraft_version: int = 0


def read_committed_metadata(
    view: LogView,
    *,
    needs_footer: bool = True,
    agreed_end_offset: Callable[[Collection[int]], int] = lambda _: 0,
) -> CommittedMetadata:
    """Return what the log of ``__cluster_metadata-0`` says.

    Without ``needs_footer`` a snapshot that is cut counts as what is left of it, and so does a log
    with damage, as for a node; a snapshot that is empty does not.
    ``agreed_end_offset`` is given the ids of the voters: batches that end there or before are known
    to be on the disks of most.
    `InvalidRecordError`: a record is not understood, since a later version of Kafka wrote it, or a
    part is missing.
    """
    snapshots = usable_snapshots(view)
    reading = _Reading(view.directory.path)
    committed_end_offset = 0
    if snapshots:
        reading.read_snapshot(snapshots[-1], needs_footer=needs_footer)
        committed_end_offset = snapshots[-1].end_offset
    end_offset = max(committed_end_offset, view.log_end_offset)
    is_discarded = not needs_footer and _is_cut_below(view, committed_end_offset)
    if snapshots and (is_discarded or is_behind(view, snapshots[-1])):
        end_offset = committed_end_offset
    reading.forget_changes()
    start_offset = committed_end_offset
    batches = _log_batches(view, start_offset, end_offset)
    for batch in batches if needs_footer else _up_to_damage(batches):
        reading.read_log_batch(batch, start_offset)
        if batch.records:
            reading.end_batch(batch.records[-1].offset + 1)
    if not reading.voters():
        # Snapshots of brokers whose configuration names the voters do not; the log may.
        batches = _log_batches(view, view.local_log_start_offset, start_offset)
        for batch in batches if needs_footer else _up_to_damage(batches):
            reading.read_voters(batch)
    voters = reading.voters() or frozenset()
    if len(voters) == 1:
        committed_end_offset = end_offset
    else:
        agreed = agreed_end_offset(voters or reading.image.controllers)
        ends = [each.end_offset for each in reading.changes if each.end_offset <= agreed]
        committed_end_offset = max([committed_end_offset, *ends])
    undecided = [each for each in reading.changes if each.end_offset > committed_end_offset]
    _ensure_complete(reading.image, view.directory.path)
    return CommittedMetadata(
        view.directory.path,
        reading.image,
        committed_end_offset,
        end_offset,
        frozenset().union(*(each.configs for each in undecided)),
        frozenset().union(*(each.replicas for each in undecided)),
        voters,
        reading.voter_set,
        reading.kraft_version,
    )


def _is_cut_below(view: LogView, offset: int) -> bool:
    """Whether a node that starts finds a damaged batch below an offset, and cuts the log there.

    It looks at checksums, and not at whether offsets ascend.
    """
    for segment in view.segments:
        if segment.base_offset >= offset:
            return False
        with segment.open_log() as source:
            size = source.size()
            windows = SegmentWindows(source, 0, size)
            try:
                for window in windows:
                    for batch in batches_in(window, source.path):
                        if batch.records and batch.records[-1].offset >= offset:
                            return False
            except CorruptRecordError:
                return True
            if windows.tail.position < size:
                return True
    return False


def _ensure_complete(image: MetadataImage, path: str) -> None:
    """Warn of types that are not known; raise where a part is missing."""
    if image.unknown_types:
        types = ", ".join(map(str, sorted(image.unknown_types)))
        _LOGGER.warning(
            "%s: records of types that are not known here are left out: %s",
            *(printable_location(path), types),
        )
    if image.unknown_topic_ids:
        ids = ", ".join(sorted(map(format_uuid, image.unknown_topic_ids)))
        reason = f"records name topics that no record has introduced (ids {ids}): a part is missing"
        raise InvalidRecordError(reason, path)
    if image.unknown_brokers:
        ids = ", ".join(map(str, sorted(image.unknown_brokers)))
        reason = (
            f"records name brokers that no record has registered (ids {ids}): a part is missing"
        )
        raise InvalidRecordError(reason, path)


def _up_to_damage(batches: Iterator[MetadataBatch]) -> Iterator[MetadataBatch]:
    with suppress(CorruptRecordError):
        yield from batches


def _log_batches(view: LogView, start: int, end: int) -> Iterator[MetadataBatch]:
    lowest_offset = 0
    for each in segment_slices(view, start, end):
        source = open_slice(each, None, lowest_offset)
        if source is None:
            continue
        with source:
            windows = CheckedWindows(source, each, lowest_offset=lowest_offset)
            for window in windows:
                yield from batches_in(window, each.path)
            lowest_offset = windows.next_offset


class _BatchChanges(NamedTuple):
    """The resources and partitions whose configuration or replicas a batch of the log changes."""

    end_offset: int
    configs: frozenset[ConfigResource]
    replicas: frozenset[TopicPartition]


class _Reading:
    """The image that is being made, and what was said of the voters."""

    def __init__(self, path: str) -> None:
        self._path = path
        self.image = MetadataImage()
        self.voter_set: tuple[Voter, ...] = ()
        self.kraft_version = 0
        self.changes: list[_BatchChanges] = []
        self._voters_of_leader: frozenset[int] | None = None
        self._last_control_type: ControlRecordType | None = None
        self._next_offset: int | None = None

    def forget_changes(self) -> None:
        self.image.changed.clear()
        self.image.moved.clear()

    def end_batch(self, end_offset: int) -> None:
        """Note what the records up to an offset have changed, after those of the batch before."""
        configs, replicas = frozenset(self.image.changed), frozenset(self.image.moved)
        self.changes.append(_BatchChanges(end_offset, configs, replicas))
        self.forget_changes()

    def read_snapshot(self, snapshot: MetadataSnapshot, *, needs_footer: bool) -> None:
        for batch in snapshot_batches(snapshot, ignores_torn_end=not needs_footer):
            self._last_control_type = None
            for record in batch.records:
                self._read(record, is_control=batch.is_control)
        if needs_footer and self._last_control_type is not ControlRecordType.SNAPSHOT_FOOTER:
            raise _no_footer(snapshot)

    def read_log_batch(self, batch: MetadataBatch, start_offset: int) -> None:
        """Take in the records of the log's next batch from an offset on; none may be missing."""
        for record in batch.records:
            if record.offset < start_offset:
                continue
            expected = start_offset if self._next_offset is None else self._next_offset
            if record.offset != expected:
                reason = (
                    f"offsets {expected} to {record.offset - 1} are missing: nothing is ever "
                    "compacted here"
                )
                raise MissingOffsetsError(reason, self._path)
            self._next_offset = record.offset + 1
            self._read(record, is_control=batch.is_control)

    def read_voters(self, batch: MetadataBatch) -> None:
        """Take in what a batch of the log says of the voters, and nothing else."""
        for record in batch.records if batch.is_control else ():
            self._apply_control(record)

    def _read(self, record: Record, *, is_control: bool) -> None:
        try:
            if is_control:
                self._apply_control(record)
            else:
                self.image.apply(record.value)
        except InvalidRecordError as error:
            reason = (
                f"the record at offset {record.offset} is not understood, since a later version "
                f"of Kafka wrote it or it is broken: {error.reason}"
            )
            raise InvalidRecordError(reason, self._path) from error

    def _apply_control(self, record: Record) -> None:
        kind = parse_control_record_type(record.key)
        self._last_control_type = kind
        if kind not in _ABOUT_VOTERS:
            return
        fields = control_fields(kind, record.value or b"")
        match kind:
            case ControlRecordType.KRAFT_VERSION:
                self.kraft_version = fields["kRaftVersion"]
            case ControlRecordType.KRAFT_VOTERS:
                self.voter_set = tuple(_voter(each) for each in fields["voters"])
            case ControlRecordType.LEADER_CHANGE:
                self._voters_of_leader = frozenset(each["voterId"] for each in fields["voters"])

    def voters(self) -> frozenset[int] | None:
        """Return the ids of the voters; None if nothing names them."""
        if self.voter_set:
            return frozenset(each.voter_id for each in self.voter_set)
        stored = read_quorum_state(join(self._path, QUORUM_STATE))
        if stored is not None and stored.voters is not None:
            return stored.voters
        return self._voters_of_leader


_ABOUT_VOTERS = (
    ControlRecordType.KRAFT_VERSION,
    ControlRecordType.KRAFT_VOTERS,
    ControlRecordType.LEADER_CHANGE,
)


def _voter(fields: dict[str, Any]) -> Voter:
    endpoints = tuple(endpoint_of(each) for each in fields["endpoints"])
    return Voter(fields["voterId"], fields["voterDirectoryId"], endpoints)
