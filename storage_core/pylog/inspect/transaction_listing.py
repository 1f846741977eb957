"""A transaction in one partition, as `pylog.inspect.listed_transactions` lists it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pylog.errors import LogStorageError
    from pylog.model import TopicPartition


@dataclass(frozen=True, slots=True)
class ListedTransaction:
    """A transaction in one partition.

    Attributes
    ----------
    topic, partition
        Where its records are.
    producer_id, producer_epoch, first_offset, last_offset, state, marker_offset, size_bytes
        As in table ``transactions``, see `pylog.inspect.tables.transactions_table`.
    records
        How many there are.
    started_ms
        When its coordinator began it; where that is not known, the time of its first batch that is
        here. None if that is not known either.
    ended_ms
        The time of its marker; None while it is open.
    open_ms
        How long it has been open; None if it is not, or since when is not known.
    is_overdue
        Whether it has been open for longer than transactions may be.
    transactional_id, coordinator_state
        What ``__transaction_state`` says of the producer, if it is there and does: the state is
        that of the transactional id now, and may be that of a later transaction.
    is_hanging
        Whether it is overdue and its coordinator will not end it. None if that cannot be told, for
        want of the coordinator's record.
    """

    topic: str
    partition: int
    producer_id: int
    producer_epoch: int
    first_offset: int | None
    last_offset: int | None
    state: str
    marker_offset: int | None
    size_bytes: int
    records: int
    started_ms: int | None
    ended_ms: int | None
    open_ms: int | None
    is_overdue: bool
    transactional_id: str | None
    coordinator_state: str | None
    is_hanging: bool | None


@dataclass(frozen=True, slots=True)
class TransactionListing:
    """What `pylog.inspect.listed_transactions.transactions` returns.

    Attributes
    ----------
    transactions
        Those that are overdue first, the oldest of them first; then the others that are open; then
        those that may be, and those that have ended, if these were asked for.
    counts
        How many transactions there are in each partition that has any, by their state.
    partition_count
        How many partitions were looked at.
    has_coordinators
        Whether partitions of ``__transaction_state`` were there to be asked.
    errors
        What could not be read; of such a partition only what is before the damage is known.
    """

    transactions: list[ListedTransaction]
    counts: dict[TopicPartition, dict[str, int]] = field(default_factory=dict)
    partition_count: int = 0
    has_coordinators: bool = False
    errors: list[LogStorageError] = field(default_factory=list)

    @property
    def totals(self) -> dict[str, int]:
        """How many transactions there are of each state."""
        total: Counter[str] = Counter()
        for counts in self.counts.values():
            total.update(counts)
        return dict(total)
