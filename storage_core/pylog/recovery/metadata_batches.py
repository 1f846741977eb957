r"""Records of the cluster's metadata as batches that a node takes for its leader's.

All records of a batch have one timestamp: a node ends where one has a delta. The batch has the last
epoch of the log. It is not compressed. A control batch (attributes 0x20) has control records alone;
others have null keys and values of this form::

    frame version 1, type, version of the message: unsigned varints; then the message

Source: AbstractApiMessageSerde, RecordsIterator, BatchAccumulator, VotersRecord,
PartitionChangeRecord, AbortTransactionRecord (Kafka 4.4); KIP-595, KIP-853, KIP-966.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from pylog.internal_topics.cluster_metadata import METADATA_MESSAGES
from pylog.internal_topics.control_messages import write_control_message
from pylog.internal_topics.message_writer import write_message
from pylog.model import ControlRecordType
from pylog.record.record_batch_builder import RecordBatchBuilder
from pylog.record.varint import encode_unsigned_varint

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pylog.reading.internal_logs import Voter

_HEADER = ControlRecordType.SNAPSHOT_HEADER
_FOOTER = ControlRecordType.SNAPSHOT_FOOTER
_KRAFT_VERSION = ControlRecordType.KRAFT_VERSION
_VOTERS = ControlRecordType.KRAFT_VOTERS
_FRAME_VERSION = 1
_RECORDS_IN_BATCH = 500
_TYPE_IDS = {message.name: type_id for type_id, message in METADATA_MESSAGES.items()}
_SUPPORTED_KRAFT_VERSIONS = {"minSupportedVersion": 0, "maxSupportedVersion": 1}

FIRST_LEVEL_WITH_DIRECTORIES = 17
"""Of metadata.version: 3.7-IV2."""
FIRST_LEVEL_OF_KAFKA_4 = 22
"""4.0-IV0."""
_FIRST_LEVEL_WITH_ELR = 23
"""4.0-IV1."""


class MetadataAppend(NamedTuple):
    """A batch that is appended, and a text about it."""

    text: str
    base_offset: int
    records: int
    data: bytes


class BatchAppender:
    """Makes batches that follow each other at the end of a log. One thread."""

    def __init__(self, end_offset: int, epoch: int, timestamp_ms: int) -> None:
        self.end_offset = end_offset
        self._epoch = epoch
        self._timestamp_ms = timestamp_ms
        self.appended: list[MetadataAppend] = []

    def append_voters(self, voters: Sequence[Voter], text: str) -> None:
        """Add the control batch that names the voters."""
        fields = {"version": 0, "voters": [_voter_fields(each) for each in voters]}
        self.append_control([(_VOTERS, fields)], text)

    def append_control(
        self, records: Sequence[tuple[ControlRecordType, dict[str, Any]]], text: str
    ) -> None:
        """Add one batch of control records."""
        builder = self._builder(is_control_batch=True)
        for kind, fields in records:
            value = write_control_message(kind, fields)
            builder.append_control_record(self._timestamp_ms, kind, value)
        self._add(builder, len(records), text)

    def append_records(self, values: Sequence[bytes], text: str) -> None:
        """Add records, in as many batches as they need."""
        for start in range(0, len(values), _RECORDS_IN_BATCH):
            part = values[start : start + _RECORDS_IN_BATCH]
            builder = self._builder(is_control_batch=False)
            for value in part:
                builder.append(self._timestamp_ms, None, value)
            self._add(builder, len(part), text)

    def _builder(self, *, is_control_batch: bool) -> RecordBatchBuilder:
        return RecordBatchBuilder(
            base_offset=self.end_offset,
            partition_leader_epoch=self._epoch,
            is_control_batch=is_control_batch,
        )

    def _add(self, builder: RecordBatchBuilder, records: int, text: str) -> None:
        self.appended.append(MetadataAppend(text, self.end_offset, records, builder.build()))
        self.end_offset += records


def snapshot_of(
    values: Sequence[bytes], epoch: int, timestamp_ms: int, voters: Sequence[Voter] | None
) -> bytes:
    """Return a snapshot of records; with voters, for nodes whose log names them.

    Its offsets count from 0, whatever its name says.

    Source: RecordsSnapshotWriter (Kafka 4.4).
    """
    appender = BatchAppender(0, epoch, timestamp_ms)
    head: list[tuple[ControlRecordType, dict[str, Any]]] = [
        (_HEADER, {"version": 0, "lastContainedLogTimestamp": timestamp_ms})
    ]
    if voters is not None:
        head += [
            (_KRAFT_VERSION, {"version": 0, "kRaftVersion": 1}),
            (_VOTERS, {"version": 0, "voters": [_voter_fields(each) for each in voters]}),
        ]
    appender.append_control(head, "head")
    appender.append_records(values, "records")
    appender.append_control([(_FOOTER, {"version": 0})], "foot")
    return b"".join(each.data for each in appender.appended)


def metadata_record(name: str, version: int, fields: dict[str, Any]) -> bytes:
    """Return the value of a metadata record."""
    type_id = _TYPE_IDS[name]
    frame = b"".join(map(encode_unsigned_varint, (_FRAME_VERSION, type_id, version)))
    return frame + write_message(METADATA_MESSAGES[type_id], fields, version)


def topic_config_record(topic: str, name: str, value: str) -> bytes:
    """Return the record that sets a configuration of a topic."""
    fields = {"resourceType": 2, "resourceName": topic, "name": name, "value": value}
    return metadata_record("ConfigRecord", 0, fields)


def partition_record(level: int, fields: dict[str, Any]) -> bytes:
    """Return a PartitionRecord as a controller at a level of metadata.version writes it."""
    version = 2 if level >= _FIRST_LEVEL_WITH_ELR else int(level >= FIRST_LEVEL_WITH_DIRECTORIES)
    return metadata_record("PartitionRecord", version, fields)


def partition_change(level: int, fields: dict[str, Any]) -> bytes:
    """Return a PartitionChangeRecord as a controller at a level of metadata.version writes it."""
    version = 2 if level >= _FIRST_LEVEL_WITH_ELR else int(level >= FIRST_LEVEL_WITH_DIRECTORIES)
    if version == 2:
        fields = {**fields, "eligibleLeaderReplicas": [], "lastKnownElr": []}
    return metadata_record("PartitionChangeRecord", version, fields)


def _voter_fields(voter: Voter) -> dict[str, Any]:
    return {
        "voterId": voter.voter_id,
        "voterDirectoryId": voter.directory_id,
        "endpoints": [each._asdict() for each in voter.endpoints],
        "kRaftVersionFeature": _SUPPORTED_KRAFT_VERSIONS,
    }


def bytes_of(appends: Iterable[MetadataAppend]) -> int:
    """Return how many bytes are appended."""
    return sum(len(each.data) for each in appends)
