"""Which partition of an internal topic answers for an id: a group, or a transactional id.

A share group has an id for each partition that it reads: group:topicId:partition.

The coordinator of an id is the leader of partition ``abs(hash) % count``, where the hash is Java's
of the id, and the count is the topic's number of partitions today. Once that number has been
raised, what other partitions hold of an id is stale: no broker looks there any more.

The number is known from the cluster's metadata, from a broker's ``server.properties``, or from a
complete set of partitions, if no id contradicts it.

Source: GroupCoordinatorService.partitionFor, TransactionStateManager.partitionFor,
ShareCoordinatorService.partitionFor, Utils.abs, java.lang.String.hashCode (Kafka 4.4).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pylog.errors import LogStorageError
from pylog.internal_topics.metadata_image import MetadataImage
from pylog.reading.internal_logs import CLUSTER_METADATA, read_committed_metadata

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from pylog.reading.log_directory import LogDirectory


@dataclass(frozen=True, slots=True)
class StaleState:
    """What a partition holds of an id and does not count, since another one answers for the id.

    Attributes
    ----------
    topic
        ``__consumer_offsets``, ``__transaction_state`` or ``__share_group_state``.
    id
        Of the group, or the transactional one; of a share group group:topicId:partition.
    partition
        The number of the partition.
    coordinator
        The number of the partition that answers for the id; None where that is not known.
    used
        The number of the partition whose state is listed; None where none is.
    """

    topic: str
    id: str
    partition: int
    coordinator: int | None
    used: int | None

    def __str__(self) -> str:
        text = f"{self.id} has state in partition {self.partition} of {self.topic}, too"
        if self.coordinator is not None:
            return f"{text}, which is stale: partition {self.coordinator} answers for it"
        return (
            f"{text}: the topic's number of partitions, which says where a broker looks, is not "
            f"known here; what partition {self.used} has is newer, and is shown"
        )


def java_hash(text: str) -> int:
    """Return what ``String.hashCode`` does in Java, signed."""
    value = 0
    units = text.encode("utf-16-be", "surrogatepass")
    for at in range(0, len(units), 2):
        value = (31 * value + int.from_bytes(units[at : at + 2], "big")) & 0xFFFFFFFF
    return value - ((value & 0x80000000) << 1)


def partition_for(name: str, count: int) -> int:
    """Return the partition that answers for an id, of ``count``."""
    value = java_hash(name)
    return (0 if value == -(1 << 31) else abs(value)) % count


def cluster_image(directory: LogDirectory, errors: list[LogStorageError]) -> MetadataImage:
    """Return what the cluster's metadata says; nothing where it is not here.

    Damaged ones say nothing, either: ``errors`` gets why, since then the answer lacks something.
    """
    if CLUSTER_METADATA in directory:
        try:
            return read_committed_metadata(directory[CLUSTER_METADATA]).image
        except LogStorageError as error:
            errors.append(error)
    return MetadataImage()


def partitions_in(image: MetadataImage, topic: str) -> int | None:
    """Return how many partitions a topic has by the cluster's metadata, None if they lack it."""
    return next((len(each.partitions) for each in image.topics if each.name == topic), None)


def partition_count(
    image: MetadataImage,
    topic: str,
    ids: Mapping[int, Collection[str]],
    configured: int | None,
) -> int | None:
    """Return how many partitions an internal topic has; None where that is not known.

    ``ids`` are those in each partition that is here, ``configured`` is the number of partitions
    that ``server.properties`` has.
    """
    known = partitions_in(image, topic) or configured
    if known:
        return known
    count = len(ids)
    if not ids or set(ids) != set(range(count)):
        return None
    places: dict[str, set[int]] = {}
    for partition, names in ids.items():
        for name in names:
            places.setdefault(name, set()).add(partition)
    fits = all(partition_for(name, count) in found for name, found in places.items())
    return count if fits else None


def who_answers(
    topic: str,
    count: int | None,
    ids: Mapping[int, Collection[str]],
    latest: Callable[[str, int], int],
) -> tuple[dict[str, int], list[StaleState]]:
    """Return the partition that counts for each id, and what other partitions hold.

    ``count`` and ``ids`` see `partition_count`. Where the number is not known, of an id in several
    partitions the one with the latest state counts, as ``latest`` says of an id and a partition.
    """
    places: dict[str, list[int]] = {}
    for partition, names in sorted(ids.items()):
        for name in names:
            places.setdefault(name, []).append(partition)
    answers: dict[str, int] = {}
    others: list[StaleState] = []
    for name, found in sorted(places.items()):
        coordinator = None if count is None else partition_for(name, count)
        used: int | None = max(found, key=lambda each: (latest(name, each), each))
        if coordinator is not None:
            used = coordinator if coordinator in found else None
        if used is not None:
            answers[name] = used
        others += [
            StaleState(topic, name, each, coordinator, used) for each in found if each != used
        ]
    return answers, others
