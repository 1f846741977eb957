"""The records of ``__cluster_metadata``: a snapshot of it, and the log from there on.

A snapshot, ``<end offset>-<epoch>.checkpoint``, is a file of batches that stands for all records
below its end offset; records below one may be gone from the log. The oldest that the log follows on
is taken: of what was deleted since then, the log still has the records.

Source: Snapshots, KafkaMetadataLog (Kafka 4.3); KIP-630.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from pylog.errors import CorruptRecordError, InvalidRecordError, LogDirectoryError
from pylog.files.storage import list_directory, open_file
from pylog.locations import printable_location
from pylog.log_file.segment_windows import SegmentWindows
from pylog.model import TopicPartition
from pylog.reading.log_directory import LogDirectory
from pylog.reading.scan import scan
from pylog.record.record_batch import RecordBatch

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pylog.reading.log_view import LogView
    from pylog.record.record import Record
    from pylog.record.window import Window

CLUSTER_METADATA = TopicPartition("__cluster_metadata", 0)

_SNAPSHOT_NAME = re.compile(r"([0-9]{20})-([0-9]{10})\.checkpoint")


class MetadataSnapshot(NamedTuple):
    """A snapshot: the offset after the last record that it stands for, that record's epoch."""

    end_offset: int
    epoch: int
    path: str


class MetadataBatch(NamedTuple):
    """The records of a batch, and whether they are control records."""

    is_control: bool
    records: tuple[Record, ...]


def metadata_snapshots(view: LogView) -> list[MetadataSnapshot]:
    """Return the snapshots beside a log, the oldest first."""
    found = []
    for entry in list_directory(view.directory.path):
        match = _SNAPSHOT_NAME.fullmatch(entry.name)
        if match is not None:
            found.append(MetadataSnapshot(int(match[1]), int(match[2]), entry.path))
    return sorted(found)


def usable_snapshots(view: LogView) -> list[MetadataSnapshot]:
    """Return the snapshots that the log follows on, the oldest first; none if it is whole.

    Raises
    ------
    LogDirectoryError
        The log begins after offset 0, and no snapshot leads up to it.
    """
    start = view.log_start_offset
    usable = [each for each in metadata_snapshots(view) if each.end_offset >= start]
    if start > 0 and not usable:
        path = printable_location(view.directory.path)
        reason = (
            f"the log of the cluster's metadata begins at offset {start}, and no snapshot "
            f"(<offset>-<epoch>.checkpoint) of that offset or a later one is here"
        )
        raise LogDirectoryError(reason, path)
    return usable


def metadata_values(view: LogView) -> Iterator[bytes | None]:
    """Yield the values of the metadata records, in order; control records are left out.

    Parameters
    ----------
    view
        The log of `CLUSTER_METADATA`.

    Raises
    ------
    LogDirectoryError
        The log begins after offset 0, and no snapshot leads up to it.
    CorruptRecordError, InvalidRecordError
        The log or the snapshot is damaged.
    """
    start = view.log_start_offset
    usable = usable_snapshots(view)
    if usable:
        for batch in snapshot_batches(usable[0]):
            if not batch.is_control:
                yield from (record.value for record in batch.records)
        start = usable[0].end_offset
    if start >= view.log_end_offset:
        return
    directory = LogDirectory([view.directory], views={view.topic_partition: view})
    records = scan(directory, topics=[view.topic], start=start, columns=["value"])
    for batch in records.to_batches():
        yield from batch.column(0).to_pylist()


def snapshot_batches(snapshot: MetadataSnapshot) -> Iterator[MetadataBatch]:
    """Yield the batches of a snapshot, control batches among them.

    Raises
    ------
    CorruptRecordError
        The snapshot is damaged.
    """
    with open_file(snapshot.path) as source:
        size = source.size()
        windows = SegmentWindows(source, 0, size)
        for window in windows:
            yield from batches_in(window, snapshot.path)
        if windows.tail.position < size:
            reason = windows.tail.defect or "the last batch of this snapshot is cut short"
            raise CorruptRecordError(reason, snapshot.path, windows.tail.position)


def batches_in(window: Window, path: str) -> Iterator[MetadataBatch]:
    """Yield the batches of a window of a file, each with a right checksum.

    Raises
    ------
    CorruptRecordError
        A batch is damaged, or its records break the format.
    """
    buffer = window.buffer.data
    for position in window.headers.positions.tolist():
        try:
            batch = RecordBatch(buffer[position:])
            batch.ensure_valid()
            yield MetadataBatch(batch.header.is_control_batch, tuple(batch.records()))
        except (CorruptRecordError, InvalidRecordError) as error:
            at = window.file_position + position
            raise CorruptRecordError(error.reason, path, at) from error
