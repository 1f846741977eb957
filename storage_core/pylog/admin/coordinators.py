"""Which partition of an internal topic answers for an id: a group's, or a transactional one.

The coordinator of an id is the leader of partition ``abs(hash) % count``, where the hash is Java's
of the id, and the count is the topic's number of partitions today. Once that number has been
raised, what other partitions hold of an id is stale: no broker looks there any more.

The number is known from the cluster's metadata, from a broker's ``server.properties``, or from a
complete set of partitions, if no id contradicts it.

Source: GroupCoordinatorService.partitionFor, TransactionStateManager.partitionFor, Utils.abs,
java.lang.String.hashCode (Kafka 4.3).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pylog.reading.internal_logs import partition_count_in_metadata

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from pylog.reading.log_directory import LogDirectory


@dataclass(frozen=True, slots=True)
class StaleState:
    """What a partition holds of an id and does not count, since another one answers for the id.

    Attributes
    ----------
    topic
        ``__consumer_offsets`` or ``__transaction_state``.
    id
        Of the group, or the transactional one.
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
            return f"{text}, where no broker looks: partition {self.coordinator} answers for it"
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


def _partition_count(
    directory: LogDirectory,
    topic: str,
    ids: Mapping[int, Collection[str]],
    configured: int | None,
) -> int | None:
    """Return how many partitions an internal topic has; None where that is not known."""
    known = partition_count_in_metadata(directory, topic)
    if known is not None:
        return known
    if configured is not None:
        return configured
    count = len(ids)
    if set(ids) != set(range(count)):
        return None
    places: dict[str, set[int]] = {}
    for partition, names in ids.items():
        for name in names:
            places.setdefault(name, set()).add(partition)
    fits = all(partition_for(name, count) in found for name, found in places.items())
    return count if fits else None


def who_answers(
    directory: LogDirectory,
    topic: str,
    ids: Mapping[int, Collection[str]],
    configured: int | None,
    latest: Callable[[str, int], int],
) -> tuple[dict[str, int], list[StaleState]]:
    """Return the partition that counts for each id, and what other partitions hold.

    ``ids`` are those in each partition that is here, ``configured`` is the number of partitions
    that ``server.properties`` has. Where the number is not known, of an id in several partitions
    the one with the latest state counts, as ``latest`` says of an id and a partition.
    """
    count = _partition_count(directory, topic, ids, configured)
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
