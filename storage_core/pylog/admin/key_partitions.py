"""Which partition of a topic a key is in, as the client has chosen that wrote it.

===================================== =========================================================
``default``                           Kafka's clients in Java, and most others: murmur2
``murmur2``, ``murmur2_random``       the same, as librdkafka calls it
``consistent``, ``consistent_random`` CRC-32; the latter is librdkafka's default
``fnv1a``, ``fnv1a_random``           librdkafka's FNV-1a, as Sarama has it
``integer_key``                       a decimal number, modulo the number of partitions
===================================== =========================================================

The names that end in ``_random`` differ for records without a key alone, but for an empty key,
which ``consistent_random`` puts anywhere.

The number of partitions is today's: from the cluster's metadata, else that of the partitions that
are here if they are numbered from 0 on without a gap. Records that were written before partitions
were added may be elsewhere.

Source: BuiltInPartitioner (Kafka 4.3), rd_kafka_msg_partitioner_* (librdkafka 2).
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, NamedTuple

from pylog.errors import UnknownTopicOrPartitionError
from pylog.reading.coordinators import cluster_image, partitions_in
from pylog.writing import KEY_PARTITIONER_NAMES
from pylog.writing.partitioner import IntegerKeyPartitioner, partition_of_key

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from pylog.errors import LogStorageError
    from pylog.internal_topics.metadata_image import MetadataImage
    from pylog.reading.log_directory import LogDirectory


def _crc32(key: bytes, count: int) -> int:
    return zlib.crc32(key) % count


def _crc32_or_random(key: bytes, count: int) -> int:
    if not key:
        msg = "partitioner consistent_random puts an empty key anywhere; leave the partitioner out"
        raise ValueError(msg)
    return _crc32(key, count)


def _fnv1a(key: bytes, count: int) -> int:
    value = 0x811C9DC5
    for byte in key:
        value = (value ^ byte) * 0x01000193 & 0xFFFFFFFF
    return min(value, (1 << 32) - value) % count  # of a signed number, the absolute value


_PARTITIONERS: dict[str, Callable[[bytes, int], int]] = {
    "default": partition_of_key,
    "integer_key": lambda key, count: IntegerKeyPartitioner(count).partition(key),
    "murmur2": partition_of_key,
    "murmur2_random": partition_of_key,
    "consistent": _crc32,
    "consistent_random": _crc32_or_random,
    "fnv1a": _fnv1a,
    "fnv1a_random": _fnv1a,
}


class KeyPartitions(NamedTuple):
    """The partitions of a topic that some keys are in, and how many the topic has."""

    topic: str
    partitions: tuple[int, ...]
    partition_count: int

    @classmethod
    def of(
        cls,
        directory: LogDirectory,
        topic: str,
        keys: Collection[bytes],
        partitioner: str = KEY_PARTITIONER_NAMES[0],
        image: MetadataImage | None = None,
    ) -> KeyPartitions | None:
        """Return them; None where the number of partitions is not known.

        ``image`` is the cluster's metadata, where somebody has read them.
        """
        choose = _PARTITIONERS[partitioner]
        count = partitions_in(image or cluster_image(directory, []), topic)
        if count is None:
            here = {each.partition for each in directory.topic_partitions if each.topic == topic}
            count = len(here) if here == set(range(len(here))) else None
        if count is None:
            return None
        return cls(topic, tuple(sorted({choose(key, count) for key in keys})), count)


def partitions_of_keys(
    directory: LogDirectory,
    chosen: Mapping[str, Sequence[int]],
    keys: Collection[bytes],
    partitioner: str,
) -> list[KeyPartitions]:
    """Return the partitions to read of each chosen topic, by the partitioner that the user names.

    `ValueError` if there is no such partitioner, or a number of partitions is not known; an error
    of the cluster's metadata, which may know the number, if they are damaged;
    `UnknownTopicOrPartitionError` if a partition is not here.
    """
    if partitioner not in _PARTITIONERS:
        known = ", ".join(KEY_PARTITIONER_NAMES)
        msg = f"partitioner {partitioner!r} is none of {known}"
        raise ValueError(msg)
    errors: list[LogStorageError] = []
    image, found = cluster_image(directory, errors), []
    if errors:
        raise errors[0]
    for topic, here in chosen.items():
        place = KeyPartitions.of(directory, topic, keys, partitioner, image)
        if place is None:
            msg = (
                f"it is not known how many partitions topic {topic!r} has, which says where a key "
                f"is: of its partitions, {_listed(here)} are here, and no metadata of the cluster. "
                "Give the log directories of all brokers, or leave the partitioner out"
            )
            raise ValueError(msg)
        missing = sorted(set(place.partitions) - set(here))
        if missing:
            msg = (
                f"partition {missing[0]} of topic {topic!r}, where partitioner {partitioner} puts "
                f"the key, is not here; found {_listed(here)} of {place.partition_count}. Give the "
                "log directories of all brokers, or leave the partitioner out"
            )
            raise UnknownTopicOrPartitionError(msg)
        found.append(place)
    return found


def _listed(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers))
