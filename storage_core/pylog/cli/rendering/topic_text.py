"""Topics as ``kafka-topics --describe`` prints them, and as a JSON document."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import pylog

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pylog import DescribedPartition, DescribedTopic, TopicDescription

_UNKNOWN = "-"


def topic_lines(described: TopicDescription) -> Iterator[str]:
    """Yield a line for each topic and each partition of it; those that were deleted come last."""
    for topic in described.topics:
        yield from _topic_lines(topic)
    for topic in described.deleted:
        yield (
            f"Deleted topic: {pylog.printable(topic.topic)}\t"
            f"TopicId: {topic.topic_id or _UNKNOWN}\t"
            f"PartitionCount: {len(topic.partitions)}"
        )


def where_from(described: TopicDescription) -> str:
    """Return a line that says what the topics are known from."""
    if described.metadata_path is None:
        return "no __cluster_metadata-0 is here: this is what directories alone tell"
    return (
        f"from {pylog.printable(described.metadata_path)}, records below offset "
        f"{described.metadata_end_offset}"
    )


def _topic_lines(topic: DescribedTopic) -> Iterator[str]:
    fields = {
        "Topic": pylog.printable(topic.topic),
        "TopicId": topic.topic_id or _UNKNOWN,
        "PartitionCount": str(len(topic.partitions)),
        "ReplicationFactor": _known(topic.replication_factor),
        "Configs": _configs(topic),
    }
    line = "\t".join(f"{name}: {value}" for name, value in fields.items())
    if topic.is_in_metadata is False:
        line += "\tnot in the cluster's metadata"
    yield line
    for partition in topic.partitions:
        yield "\t" + "\t".join(
            f"{name}: {value}" for name, value in _partition_fields(topic, partition).items()
        )


def _configs(topic: DescribedTopic) -> str:
    if topic.configs is None:
        return _UNKNOWN
    return ",".join(pylog.printable(f"{name}={value}") for name, value in topic.configs.items())


def _partition_fields(topic: DescribedTopic, partition: DescribedPartition) -> dict[str, str]:
    fields = {
        "Topic": pylog.printable(topic.topic),
        "Partition": str(partition.partition),
        "Leader": "none" if partition.leader == -1 else _known(partition.leader),
        "Replicas": _ids(partition.replicas),
        "Isr": _ids(partition.isr),
    }
    if partition.adding_replicas:
        fields["Adding Replicas"] = _ids(partition.adding_replicas)
    if partition.removing_replicas:
        fields["Removing Replicas"] = _ids(partition.removing_replicas)
    return fields | {
        "Elr": _ids(partition.eligible_leader_replicas),
        "LastKnownElr": _ids(partition.last_known_elr),
    }


def _ids(ids: tuple[int, ...] | None) -> str:
    return _UNKNOWN if ids is None else ",".join(map(str, ids))


def _known(value: int | None) -> str:
    return _UNKNOWN if value is None else str(value)


def topic_document(described: TopicDescription) -> dict[str, Any]:
    """Return the document of ``--json``."""
    return {
        "metadataPath": described.metadata_path,
        "metadataEndOffset": described.metadata_end_offset,
        "topics": [_topic_fields(each) for each in described.topics],
        "deleted": [_topic_fields(each) for each in described.deleted],
        "errors": [str(each) for each in described.errors],
    }


def _topic_fields(topic: DescribedTopic) -> dict[str, Any]:
    return {
        "topic": topic.topic,
        "topicId": topic.topic_id,
        "isInMetadata": topic.is_in_metadata,
        "replicationFactor": topic.replication_factor,
        "configs": topic.configs,
        "partitions": [
            {pylog.json_name(name): value for name, value in asdict(each).items()}
            for each in topic.partitions
        ],
    }
