from __future__ import annotations

from pylog.internal_topics.metadata_image import ConfigResource, ConfigResourceType, MetadataImage
from pylog.model import TopicPartition
from pylog.recovery.in_sync_minimum import too_high_minimums
from tests.support.metadata_log import (
    BROKER,
    TOPIC,
    config_record,
    partition_record,
    topic_record,
)

MINIMUM = "min.insync.replicas"


def image(*configs: bytes) -> MetadataImage:
    found = MetadataImage()
    for each in [topic_record("t"), partition_record(0, 1, (1, 2, 3)), *configs]:
        found.apply(each)
    return found


def lowered(found: MetadataImage, *counts: int) -> dict[str, int]:
    replicas = {TopicPartition("t", at): count for at, count in enumerate(counts)}
    return {each.name: value for each, value in too_high_minimums(found, replicas)}


def test_a_topic_needs_no_more_in_sync_than_its_fewest_replicas() -> None:
    strict = image(config_record(TOPIC, "t", MINIMUM, "2"))
    assert lowered(strict, 3, 2) == {}
    assert lowered(strict, 3, 1) == {"t": 1}
    assert lowered(strict, 0) == {}  # it is not served at all


def test_the_default_of_all_brokers_is_lowered_too() -> None:
    strict = image(config_record(BROKER, "", MINIMUM, "3"))
    assert lowered(strict, 3) == {}
    assert list(too_high_minimums(strict, {TopicPartition("t", 0): 2})) == [
        (ConfigResource(ConfigResourceType.BROKER, ""), 2)
    ]


def test_what_is_no_number_is_nothing_to_lower() -> None:
    assert lowered(image(config_record(TOPIC, "t", MINIMUM, "many")), 1) == {}
