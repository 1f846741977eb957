"""``__remote_log_metadata``: which segments lie in remote storage (KIP-405)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pylog.errors import InvalidRecordError
from pylog.files.partition_metadata import format_uuid
from pylog.internal_topics.api_message import read_api_message
from pylog.internal_topics.schema import parse_messages
from pylog.internal_topics.versions import KafkaVersion

if TYPE_CHECKING:
    from collections.abc import Callable

    from pylog.internal_topics.api_message import ApiMessage

_MESSAGES = parse_messages("""
    struct TopicIdPartition
      name string
      id uuid
      partition int32
    struct RemoteLogSegmentId
      topicIdPartition TopicIdPartition
      id uuid
    struct SegmentLeaderEpoch
      leaderEpoch int32
      offset int64
    RemoteLogSegmentMetadataRecord 0 flexible=0
      remoteLogSegmentId RemoteLogSegmentId
      startOffset int64
      endOffset int64
      brokerId int32
      maxTimestampMs int64
      eventTimestampMs int64
      segmentLeaderEpochs []SegmentLeaderEpoch
      segmentSizeInBytes int32
      customMetadata bytes?
      remoteLogSegmentState int8
      txnIndexEmpty bool tag=0 since=4.0
    RemoteLogSegmentMetadataUpdateRecord 0 flexible=0
      remoteLogSegmentId RemoteLogSegmentId
      brokerId int32
      eventTimestampMs int64
      customMetadata bytes?
      remoteLogSegmentState int8
    RemotePartitionDeleteMetadataRecord 0 flexible=0
      topicIdPartition TopicIdPartition
      brokerId int32
      eventTimestampMs int64
      remotePartitionDeleteState int8
    RemoteLogSegmentMetadataSnapshotRecord 0 flexible=0
      segmentId uuid
      startOffset int64
      endOffset int64
      brokerId int32
      maxTimestampMs int64
      eventTimestampMs int64
      segmentLeaderEpochs []SegmentLeaderEpoch
      segmentSizeInBytes int32
      customMetadata bytes?
      remoteLogSegmentState int8
      txnIndexEmpty bool tag=0 since=4.0
""")

REMOTE_LOG_MESSAGES = dict(enumerate(_MESSAGES.values()))
"""By the number of the record's type."""

_SEGMENT_STATES = (
    "COPY_SEGMENT_STARTED",
    "COPY_SEGMENT_FINISHED",
    "DELETE_SEGMENT_STARTED",
    "DELETE_SEGMENT_FINISHED",
)
_PARTITION_STATES = (
    "DELETE_PARTITION_MARKED",
    "DELETE_PARTITION_STARTED",
    "DELETE_PARTITION_FINISHED",
)


class RemoteLogMetadataDecoder:
    """The decoder behind ``--remote-log-metadata-decoder``: Java's ``toString``, and no keys."""

    def __init__(self, kafka_version: KafkaVersion) -> None:
        self._kafka_version = kafka_version

    def decode(
        self, key: bytes | None, value: bytes | None, offset: int
    ) -> tuple[str | None, str | None]:
        """Return the text of a record's value; see `DumpDecoder`."""
        try:
            return None, self._text(value)
        except InvalidRecordError as error:
            return None, f"Error at offset {offset}, skipping. {error.reason}"

    def _text(self, value: bytes | None) -> str:
        record = read_api_message(value, REMOTE_LOG_MESSAGES, self._kafka_version)
        return _TEXTS[record.message.name](record, self._kafka_version)


def _segment_text(record: ApiMessage, kafka_version: KafkaVersion) -> str:
    fields = record.fields
    start, end = fields["startOffset"], fields["endOffset"]
    if start < 0:
        reason = (
            f"Unexpected start offset = {start}. StartOffset for a remote segment cannot be "
            "negative"
        )
        raise InvalidRecordError(reason)
    if end < start:
        reason = (
            f"Unexpected end offset = {end}. EndOffset for a remote segment cannot be less than "
            f"startOffset = {start}"
        )
        raise InvalidRecordError(reason)
    epochs = _epochs(fields)
    return _java_object(
        "RemoteLogSegmentMetadata",
        remoteLogSegmentId=_segment_id(fields),
        startOffset=start,
        endOffset=end,
        brokerId=fields["brokerId"],
        maxTimestampMs=fields["maxTimestampMs"],
        eventTimestampMs=fields["eventTimestampMs"],
        segmentLeaderEpochs=epochs,
        segmentSizeInBytes=fields["segmentSizeInBytes"],
        customMetadata=_custom_metadata(fields),
        state=_state(fields["remoteLogSegmentState"], _SEGMENT_STATES),
        **_txn_index(fields, kafka_version),
    )


def _update_text(record: ApiMessage, _kafka_version: KafkaVersion) -> str:
    fields = record.fields
    return _java_object(
        "RemoteLogSegmentMetadataUpdate",
        remoteLogSegmentId=_segment_id(fields),
        customMetadata=_custom_metadata(fields),
        state=_state(fields["remoteLogSegmentState"], _SEGMENT_STATES),
        eventTimestampMs=fields["eventTimestampMs"],
        brokerId=fields["brokerId"],
    )


def _delete_text(record: ApiMessage, _kafka_version: KafkaVersion) -> str:
    fields = record.fields
    return _java_object(
        "RemotePartitionDeleteMetadata",
        topicPartition=_topic_id_partition(fields["topicIdPartition"]),
        state=_state(fields["remotePartitionDeleteState"], _PARTITION_STATES, reason="null"),
        eventTimestampMs=fields["eventTimestampMs"],
        brokerId=fields["brokerId"],
    )


def _snapshot_text(record: ApiMessage, kafka_version: KafkaVersion) -> str:
    fields = record.fields
    state = _state(fields["remoteLogSegmentState"], _SEGMENT_STATES)
    return _java_object(
        "RemoteLogSegmentMetadataSnapshot",
        segmentId=format_uuid(fields["segmentId"]),
        startOffset=fields["startOffset"],
        endOffset=fields["endOffset"],
        maxTimestampMs=fields["maxTimestampMs"],
        segmentLeaderEpochs=_epochs(fields),
        segmentSizeInBytes=fields["segmentSizeInBytes"],
        customMetadata=_custom_metadata(fields),
        state=state,
        **_txn_index(fields, kafka_version),
    )


_TEXTS: dict[str, Callable[[ApiMessage, KafkaVersion], str]] = dict(
    zip(_MESSAGES, (_segment_text, _update_text, _delete_text, _snapshot_text), strict=True)
)


def _java_object(name: str, **fields: object) -> str:
    return f"{name}{{{', '.join(f'{key}={value}' for key, value in fields.items())}}}"


def _segment_id(fields: dict[str, Any]) -> str:
    segment_id = fields["remoteLogSegmentId"]
    return _java_object(
        "RemoteLogSegmentId",
        topicIdPartition=_topic_id_partition(segment_id["topicIdPartition"]),
        id=format_uuid(segment_id["id"]),
    )


def _topic_id_partition(fields: dict[str, Any]) -> str:
    return f"{format_uuid(fields['id'])}:{fields['name']}-{fields['partition']}"


def _epochs(fields: dict[str, Any]) -> str:
    """Return leader epochs and their first offsets, sorted; of a repeated one the last counts."""
    epochs = {each["leaderEpoch"]: each["offset"] for each in fields["segmentLeaderEpochs"]}
    if not epochs:
        reason = "segmentLeaderEpochs can not be null or empty"
        raise InvalidRecordError(reason)
    return f"{{{', '.join(f'{epoch}={epochs[epoch]}' for epoch in sorted(epochs))}}}"


def _custom_metadata(fields: dict[str, Any]) -> str:
    metadata = fields["customMetadata"]
    if metadata is None:
        return "Optional.empty"
    return f"Optional[CustomMetadata{{{len(metadata)} bytes}}]"


def _state(number: int, names: tuple[str, ...], reason: str = "state can not be null") -> str:
    if not 0 <= number < len(names):
        raise InvalidRecordError(reason)
    return names[number]


def _txn_index(fields: dict[str, Any], kafka_version: KafkaVersion) -> dict[str, str]:
    if kafka_version < KafkaVersion.V4_0:
        return {}
    return {"txnIdxEmpty": "true" if fields.get("txnIndexEmpty") else "false"}
