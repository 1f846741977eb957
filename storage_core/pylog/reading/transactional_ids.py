"""What ``__transaction_state`` says: who has which producer id, and a transaction under way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from pylog.errors import InvalidRecordError, LogStorageError
from pylog.internal_topics.transaction_state import TRANSACTION_STATES, transaction_records
from pylog.reading.coordinators import StaleState, partition_count, who_answers
from pylog.reading.internal_logs import coordinator_records

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pylog.internal_topics.metadata_image import MetadataImage
    from pylog.reading.log_view import LogView


class SharedProducer(NamedTuple):
    """A producer id that several transactional ids have now.

    Attributes
    ----------
    producer_id
        The producer id.
    transactional_ids
        Whose it is, sorted.
    """

    producer_id: int
    transactional_ids: tuple[str, ...]

    def __str__(self) -> str:
        return (
            f"transactional ids {', '.join(self.transactional_ids)} have one producer id, "
            f"{self.producer_id}: what one of them writes, commits or aborts is taken for the "
            "others', too"
        )


TRANSACTION_STATE_TOPIC = "__transaction_state"

UNDECIDED = "Ongoing"
_UNDER_WAY = frozenset({UNDECIDED, "PrepareCommit", "PrepareAbort", "PrepareEpochFence"})


class CoordinatedTransaction(NamedTuple):
    """The last that a coordinator has written of a transactional id."""

    transactional_id: str  # its name
    # Who has it now
    producer_id: int
    producer_epoch: int
    state: str  # kafka's name of the transaction's state, such as ``Ongoing``
    started_ms: int | None  # when it began; None if none has
    updated_ms: int  # when this was written
    partitions: frozenset[tuple[str, int]]  # what it covers, while it is under way

    def covers(self, producer_id: int, topic: str, partition: int) -> bool:
        """Whether the coordinator still has a transaction there to end."""
        return (
            self.producer_id == producer_id
            and self.state in _UNDER_WAY
            and (topic, partition) in self.partitions
        )


class Coordinators(NamedTuple):
    """The transactions that ``__transaction_state`` has, by producer id, and those out of date."""

    by_producer: dict[int, list[CoordinatedTransaction]]  # of ids that have, or had, a producer id
    stale: list[StaleState]

    def find(self, producer_id: int, topic: str, partition: int) -> CoordinatedTransaction | None:
        """Return who has a producer's transaction in a partition under way, else had it last."""
        known = self.by_producer.get(producer_id, [])
        for each in known:
            if each.covers(producer_id, topic, partition):
                return each
        return max(known, key=lambda each: each.updated_ms, default=None)

    @property
    def shared(self) -> Iterator[SharedProducer]:
        """Yield the producer ids that several transactional ids have now."""
        for producer_id, known in sorted(self.by_producer.items()):
            names = [each.transactional_id for each in known if each.producer_id == producer_id]
            if len(names) > 1:
                yield SharedProducer(producer_id, tuple(sorted(names)))


def transactional_ids(
    views: Iterable[LogView],
    image: MetadataImage,
    configured: int | None,
    errors: list[LogStorageError],
) -> Coordinators:
    """Return what the coordinators say whose partitions of ``__transaction_state`` are given."""
    by_partition: dict[int, dict[str, CoordinatedTransaction]] = {}
    producers: set[tuple[int, str, int]] = set()
    for view in views:
        last = by_partition[view.partition] = {}
        try:
            for each in _of_partition(view, last):
                producers.add((each.producer_id, each.transactional_id, view.partition))
        except LogStorageError as error:
            errors.append(error)
    count = partition_count(image, TRANSACTION_STATE_TOPIC, by_partition, configured)
    answers, stale = who_answers(
        TRANSACTION_STATE_TOPIC,
        count,
        by_partition,
        lambda name, place: by_partition[place][name].updated_ms,
    )
    by_producer: dict[int, list[CoordinatedTransaction]] = {}
    for producer_id, name, partition in sorted(producers):
        if answers.get(name) == partition:
            by_producer.setdefault(producer_id, []).append(by_partition[partition][name])
    return Coordinators(by_producer, stale)


def _of_partition(
    view: LogView, last: dict[str, CoordinatedTransaction]
) -> Iterator[CoordinatedTransaction]:
    """Yield what was written of transactional ids; ``last`` has the last that stands, by id."""
    records = transaction_records()
    for stored in coordinator_records(view):
        try:
            record = records.read(stored.key or b"", stored.value)
        except InvalidRecordError:
            continue  # a later version's: nothing is known of its producer
        name = record.key["transactionalId"]
        if record.value is None:
            last.pop(name, None)
            continue
        last[name] = _coordinated(name, record.value)
        yield last[name]


def _coordinated(name: str, fields: dict[str, Any]) -> CoordinatedTransaction:
    status = fields["transactionStatus"]
    is_known = 0 <= status < len(TRANSACTION_STATES)
    started = fields["transactionStartTimestampMs"]
    return CoordinatedTransaction(
        name,
        fields["producerId"],
        fields["producerEpoch"],
        TRANSACTION_STATES[status] if is_known else f"unknown ({status})",
        started if started >= 0 else None,
        fields["transactionLastUpdateTimestampMs"],
        frozenset(
            (each["topic"], number)
            for each in fields["transactionPartitions"] or ()
            for number in each["partitionIds"]
        ),
    )
