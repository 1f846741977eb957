"""Which transactional id a producer id belongs to, and what its coordinator has written of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from pylog.errors import InvalidRecordError, LogStorageError
from pylog.internal_topics.transaction_state import TRANSACTION_STATES, transaction_records
from pylog.reading.internal_logs import coordinator_records

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pylog.reading.log_view import LogView

TRANSACTION_STATE_TOPIC = "__transaction_state"

_UNDER_WAY = frozenset({"Ongoing", "PrepareCommit", "PrepareAbort", "PrepareEpochFence"})


class CoordinatedTransaction(NamedTuple):
    """The last that a coordinator has written of a transactional id.

    Attributes
    ----------
    transactional_id
        Its name.
    producer_id, producer_epoch
        Who has it now.
    state
        Kafka's name of the transaction's state, such as ``Ongoing``.
    timeout_ms
        After which the coordinator aborts a transaction.
    started_ms
        When it began; None if none has.
    partitions
        What it covers, while it is under way.
    """

    transactional_id: str
    producer_id: int
    producer_epoch: int
    state: str
    timeout_ms: int
    started_ms: int | None
    partitions: frozenset[tuple[str, int]]

    def covers(self, producer_id: int, topic: str, partition: int) -> bool:
        """Whether the coordinator still has a transaction there to end."""
        return (
            self.producer_id == producer_id
            and self.state in _UNDER_WAY
            and (topic, partition) in self.partitions
        )


def transactional_ids(
    views: Iterable[LogView], errors: list[LogStorageError]
) -> dict[int, CoordinatedTransaction]:
    """Return what coordinators say, by every producer id that a transactional id has had.

    Parameters
    ----------
    views
        Partitions of `TRANSACTION_STATE_TOPIC`. A transactional id is in one of them, and those
        whose partition is on another broker are not there.
    errors
        Gets what is wrong with a partition, of which nothing is returned then.
    """
    found: dict[int, CoordinatedTransaction] = {}
    for view in views:
        try:
            found |= _of_partition(view)
        except LogStorageError as error:
            errors.append(error)
    return found


def _of_partition(view: LogView) -> dict[int, CoordinatedTransaction]:
    by_producer: dict[int, str] = {}
    last: dict[str, CoordinatedTransaction] = {}
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
        coordinated = _coordinated(name, record.value)
        last[name] = coordinated
        by_producer[coordinated.producer_id] = name
    return {producer_id: last[name] for producer_id, name in by_producer.items() if name in last}


def _coordinated(name: str, fields: dict[str, Any]) -> CoordinatedTransaction:
    status = fields["transactionStatus"]
    is_known = 0 <= status < len(TRANSACTION_STATES)
    started = fields["transactionStartTimestampMs"]
    return CoordinatedTransaction(
        name,
        fields["producerId"],
        fields["producerEpoch"],
        TRANSACTION_STATES[status] if is_known else f"unknown ({status})",
        fields["transactionTimeoutMs"],
        started if started >= 0 else None,
        frozenset(
            (each["topic"], number)
            for each in fields["transactionPartitions"] or ()
            for number in each["partitionIds"]
        ),
    )
