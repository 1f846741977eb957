"""What ``__cluster_metadata`` says for certain: its newest snapshot, and the log from there on.

Nothing on a disk tells up to which offset the controllers have agreed. This is known without it:

* A snapshot holds only records that they had agreed on.
* A controller that is the only voter agrees with itself: whatever is in its log counts, and in the
  log of each broker that follows it.

Where there are several voters, the records after the newest snapshot may be taken back: what they
change is named in `CommittedMetadata.undecided`, and whoever acts on it would be guessing. Who the
voters are is said by records of the log or snapshot (KIP-853), else by ``quorum-state``, else by
the last change of leader.

Source: KafkaRaftClient, LeaderState.highWatermark, Snapshots, RecordsSnapshotReader (Kafka 4.3);
KIP-595, KIP-630, KIP-853.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pylog.errors import CorruptRecordError, InvalidRecordError
from pylog.files.partition_metadata import format_uuid
from pylog.files.quorum_state import QUORUM_STATE, read_quorum_voters
from pylog.internal_topics.control_messages import control_fields
from pylog.internal_topics.metadata_image import MetadataImage
from pylog.locations import join
from pylog.model import ControlRecordType
from pylog.reading.checked_windows import CheckedWindows
from pylog.reading.cluster_metadata_log import batches_in, snapshot_batches, usable_snapshots
from pylog.reading.slicing import open_slice, segment_slices
from pylog.record.control_record import parse_control_record_type

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pylog.internal_topics.metadata_image import ConfigResource
    from pylog.model import TopicPartition
    from pylog.reading.cluster_metadata_log import MetadataBatch, MetadataSnapshot
    from pylog.reading.log_view import LogView
    from pylog.record.record import Record


@dataclass(frozen=True, slots=True)
class CommittedMetadata:
    """What the metadata of a cluster say.

    Attributes
    ----------
    path
        The directory ``__cluster_metadata-0``.
    image
        What all records leave, those after `committed_end_offset` among them.
    committed_end_offset
        The controllers have certainly agreed on all records below.
    end_offset
        The offset after the last record.
    undecided
        What the records from `committed_end_offset` on change.
    undecided_replicas
        The partitions whose replicas they change.
    """

    path: str
    image: MetadataImage
    committed_end_offset: int
    end_offset: int
    undecided: frozenset[ConfigResource]
    undecided_replicas: frozenset[TopicPartition]


def read_committed_metadata(view: LogView) -> CommittedMetadata:
    """Return what the log of ``__cluster_metadata-0`` says.

    Parameters
    ----------
    view
        That log.

    Raises
    ------
    CorruptRecordError
        The log or its newest snapshot is damaged.
    InvalidRecordError
        A record is not understood, since a later version of Kafka wrote it, or a part is missing.
    CorruptCheckpointError
        ``quorum-state`` does not follow the format.
    LogDirectoryError
        The log begins after offset 0 and no snapshot leads up to it, or a file cannot be read.
    """
    snapshots = usable_snapshots(view)
    reading = _Reading(view.directory.path)
    committed_end_offset = 0
    if snapshots:
        reading.read_snapshot(snapshots[-1])
        committed_end_offset = snapshots[-1].end_offset
    end_offset = max(committed_end_offset, view.log_end_offset)
    reading.forget_changes()
    for batch in _log_batches(view, committed_end_offset, end_offset):
        reading.read_log_batch(batch, committed_end_offset)
    if len(reading.voters() or ()) == 1:
        committed_end_offset = end_offset
        reading.forget_changes()
    if reading.image.unknown_topic_ids:
        ids = ", ".join(sorted(map(format_uuid, reading.image.unknown_topic_ids)))
        reason = f"records name topics that no record has introduced (ids {ids}): a part is missing"
        raise InvalidRecordError(reason, view.directory.path)
    return CommittedMetadata(
        view.directory.path,
        reading.image,
        committed_end_offset,
        end_offset,
        frozenset(reading.image.changed),
        frozenset(reading.image.moved),
    )


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


class _Reading:
    """The image that is being made, and what was said of the voters."""

    def __init__(self, path: str) -> None:
        self._path = path
        self.image = MetadataImage()
        self._voters: frozenset[int] | None = None
        self._voters_of_leader: frozenset[int] | None = None
        self._last_control_type: ControlRecordType | None = None
        self._next_offset: int | None = None

    def forget_changes(self) -> None:
        self.image.changed.clear()
        self.image.moved.clear()

    def read_snapshot(self, snapshot: MetadataSnapshot) -> None:
        for batch in snapshot_batches(snapshot):
            self._last_control_type = None
            for record in batch.records:
                self._read(record, is_control=batch.is_control)
        if self._last_control_type is not ControlRecordType.SNAPSHOT_FOOTER:
            reason = "this snapshot does not end with its footer: its last batches are missing"
            raise CorruptRecordError(reason, snapshot.path)

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
                raise InvalidRecordError(reason, self._path)
            self._next_offset = record.offset + 1
            self._read(record, is_control=batch.is_control)

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
        if kind not in (ControlRecordType.KRAFT_VOTERS, ControlRecordType.LEADER_CHANGE):
            return
        fields = control_fields(kind, record.value or b"")
        voters = frozenset(each["voterId"] for each in fields["voters"])
        if kind is ControlRecordType.KRAFT_VOTERS:
            self._voters = voters
        else:
            self._voters_of_leader = voters

    def voters(self) -> frozenset[int] | None:
        """Return the ids of the voters; None if nothing names them."""
        if self._voters is not None:
            return self._voters
        stored = read_quorum_voters(join(self._path, QUORUM_STATE))
        return stored if stored is not None else self._voters_of_leader
