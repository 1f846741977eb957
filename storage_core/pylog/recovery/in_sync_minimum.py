"""Topics that fewer brokers are left for than have to be in sync: they take no records.

``min.insync.replicas`` of a topic, or of all brokers. ``__transaction_state`` has one of its own
from the day on which it is made: without this no transaction ends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pylog.internal_topics.metadata_image import ConfigResource, ConfigResourceType
from pylog.recovery.metadata_batches import metadata_record

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pylog.internal_topics.metadata_image import MetadataImage
    from pylog.model import TopicPartition

MIN_IN_SYNC = "min.insync.replicas"


def too_high_minimums(
    image: MetadataImage, replicas: Mapping[TopicPartition, int]
) -> Iterator[tuple[ConfigResource, int]]:
    """Yield whose minimum is too high for the replicas that are left, and what it can be."""
    left: dict[str, int] = {}
    for partition, count in replicas.items():
        if count:
            left[partition.topic] = min(count, left.get(partition.topic, count))
    for topic in image.topics:
        stored = _number(topic.configs.get(MIN_IN_SYNC))
        if topic.name in left and stored > left[topic.name]:
            yield ConfigResource(ConfigResourceType.TOPIC, topic.name), left[topic.name]
    of_all = ConfigResource(ConfigResourceType.BROKER, "")
    stored = _number(image.configs_of(of_all).get(MIN_IN_SYNC))
    lowest = min(left.values(), default=stored)
    if stored > lowest:
        yield of_all, lowest


def minimum_record(resource: ConfigResource, value: int) -> bytes:
    """Return the record that sets the minimum of a topic, or of all brokers."""
    fields = {
        "resourceType": int(resource.type),
        "resourceName": resource.name,
        "name": MIN_IN_SYNC,
        "value": str(value),
    }
    return metadata_record("ConfigRecord", 0, fields)


def _number(text: str | None) -> int:
    try:
        return int(text or "")
    except ValueError:
        return 0
