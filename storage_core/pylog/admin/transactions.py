"""`transactions`: open ones and those that were, by producer and by transactional id.

A transaction that its coordinator does not know, or thinks ended, and that has no marker here, is
hanging: nothing will end it, and what follows it is never read by read_committed consumers. Kafka
finds those with ``kafka-transactions find-hanging`` (KIP-664).
"""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from pylog.errors import LogStorageError, SegmentVanishedError
from pylog.reading.coordinators import StaleState, cluster_image
from pylog.reading.html_table import html_table, shown_time
from pylog.reading.internal_logs import CLUSTER_METADATA
from pylog.reading.log_directory import open_directory
from pylog.reading.log_view import read_steadily
from pylog.reading.producer_transactions import find_transactions
from pylog.reading.replicas import ensure_one_cluster
from pylog.reading.slicing import segment_slices
from pylog.reading.transactional_ids import (
    TRANSACTION_STATE_TOPIC,
    UNDECIDED,
    CoordinatedTransaction,
    SharedProducer,
    transactional_ids,
)
from pylog.scheduling.clock import SystemClock
from pylog.scheduling.worker_threads import thread_count, usable_processors
from pylog.text.names import names_nearest_keyword
from pylog.text.words import counted

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Collection, Iterable

    from pylog.config.server_properties import ServerProperties
    from pylog.model import TopicPartition
    from pylog.reading.log_directory import LogDirectory
    from pylog.reading.log_view import LogView
    from pylog.reading.producer_transactions import Transaction


@dataclass(frozen=True, slots=True)
class ListedTransaction:
    """A transaction in one partition.

    Attributes
    ----------
    topic, partition
        Where its records are.
    producer_id, producer_epoch, first_offset, last_offset, state, marker_offset, size_bytes
        As in table ``transactions``, see `pylog.tables.log_tables`.
    records
        How many there are.
    started_ms
        When its coordinator began it; where that is not known, the time of its first batch that is
        here. None if that is not known either.
    ended_ms
        The time of its marker; None while it is open.
    open_ms
        How long it has been open; None if it is not, began later, or since when is not known.
    is_overdue
        Whether it has been open for longer than transactions may be.
    transactional_id, coordinator_state
        What ``__transaction_state`` says of the producer, if it is there and does: the state is
        that of the transactional id now, and may be that of a later transaction.
    prepared_ms
        When the coordinator decided how it ends, while its marker is not here; else None.
    waiting_records, waiting_bytes
        What of the partition is from its first record on, where it has been decided: consumers of
        committed records wait for the marker before they read it. Records are counted by offsets.
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
    prepared_ms: int | None = None
    waiting_records: int | None = None
    waiting_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class TransactionListing:
    """What `pylog.admin.transactions.transactions` returns.

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
    stale
        What partitions of ``__transaction_state`` hold of ids for which another one answers, or
        which are in several where nobody knows which one does.
    errors
        What could not be read; of such a partition only what is before the damage is known.
    shared_producers
        Producer ids that several transactional ids have, as coordinators never give them out.
    """

    transactions: list[ListedTransaction]
    counts: dict[TopicPartition, dict[str, int]] = field(default_factory=dict)
    partition_count: int = 0
    has_coordinators: bool = False
    stale: tuple[StaleState, ...] = ()
    errors: list[LogStorageError] = field(default_factory=list)
    shared_producers: tuple[SharedProducer, ...] = ()

    def _repr_html_(self) -> str:
        rows = [
            (
                *(each.topic, each.partition, each.transactional_id, each.producer_id, each.state),
                *(each.first_offset, shown_time(each.started_ms), "overdue" * each.is_overdue),
            )
            for each in self.transactions
        ]
        columns = (
            *("topic", "partition", "transactional id", "producer id", "state"),
            *("first offset", "started (UTC)", ""),
        )
        title = counted(len(rows), "transaction")
        return html_table(
            title, columns, rows, len(rows), notes=[str(each) for each in self.errors]
        )

    @property
    def totals(self) -> dict[str, int]:
        """How many transactions there are of each state."""
        total: Counter[str] = Counter()
        for counts in self.counts.values():
            total.update(counts)
        return dict(total)


DEFAULT_MAX_TIMEOUT_MS = 15 * 60_000
"""Kafka's ``transaction.max.timeout.ms``: no transaction should be open for longer."""

_MAX_THREADS = 16


@names_nearest_keyword
def transactions(  # noqa: PLR0913 - keyword-only options, one for each thing a user may say
    *paths: str | os.PathLike[str],
    topics: Iterable[str] | None = None,
    partitions: Collection[int] = (),
    max_timeout_ms: int = DEFAULT_MAX_TIMEOUT_MS,
    now_ms: int | None = None,
    includes_ended: bool = False,
    server_properties: ServerProperties | None = None,
    threads: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> TransactionListing:
    """Return the transactions of some logs, from headers and markers.

    Parameters
    ----------
    *paths
        Log directories or topic-partition directories, of any number of brokers: of a partition
        that lies there twice one replica counts, as for `open_directory`. Partitions of
        ``__transaction_state`` among them tell transactional ids.
    topics
        Only these; None for all, internal ones included: committed offsets may be transactional.
    partitions
        Only those of these numbers; all if there is none.
    max_timeout_ms
        How long a transaction may be open before it is overdue.
    now_ms
        The time that this is counted to; None for now.
    includes_ended
        Whether committed and aborted transactions are listed, and not only counted.
    server_properties
        Of a broker: how many partitions ``__transaction_state`` has, where the cluster's metadata
        is not here (`pylog.reading.coordinators`).
    threads
        How many partitions are read at once; None for what the environment variable
        ``PYLOG_NUM_THREADS`` says, else as many as there are processors.
    progress
        Called from time to time with the bytes that have been gone through, and those of all.

    Raises
    ------
    UnknownTopicOrPartitionError
        There is no topic of a name that was given.
    LogStorageError
        A path cannot be read, or holds no log. A partition that is damaged is no error of this
        function: what was found before the damage is listed, see `TransactionListing.errors`.

    Examples
    --------
    >>> for each in pylog.transactions("kafka/intact", topics=["orders"]).transactions:
    ...     print(each.topic, each.partition, each.first_offset, each.state)
    orders 1 45 open
    """
    directory = open_directory(*paths)
    ensure_one_cluster(directory.directories)
    now = SystemClock().milliseconds() if now_ms is None else now_ms
    errors: list[LogStorageError] = []
    configured = None
    if server_properties is not None:
        configured = server_properties.transaction_topic_partitions
    coordinators = transactional_ids(
        directory.topics.get(TRANSACTION_STATE_TOPIC, []),
        cluster_image(directory, errors),
        configured,
        errors,
    )
    views = _views(directory, topics, partitions)
    listed: list[ListedTransaction] = []
    counts: dict[TopicPartition, dict[str, int]] = {}

    def of_partition(view: LogView) -> _Found:
        found = _Found(Counter(), [])
        try:
            for each in find_transactions(view):
                found.counts[each.state] += 1
                if each.state in ("open", "unknown") or includes_ended:
                    coordinated = coordinators.find(each.producer_id, *view.topic_partition)
                    found.listed.append(_listed(view, each, coordinated, now, max_timeout_ms))
        except LogStorageError as error:
            return found._replace(error=error)
        return found

    total = sum(view.size_bytes for view in views)
    done = 0
    count = thread_count(threads, default=usable_processors())
    workers = max(1, min(_MAX_THREADS, len(views), count))
    pool = ThreadPoolExecutor(workers, "pylog-transactions")
    try:
        for view, found in zip(
            views, pool.map(partial(_find_steadily, find=of_partition), views), strict=True
        ):
            is_deleted = topics is None and view.directory.was_deleted()
            if found.error is not None and not is_deleted:
                errors.append(found.error)
            if found.counts:
                counts[view.topic_partition] = dict(found.counts)
            listed += found.listed
            done += view.size_bytes
            if progress is not None:
                progress(done, total)
    finally:
        # Whoever is interrupted does not wait for the partitions that are being read.
        pool.shutdown(wait=False, cancel_futures=True)
    listed.sort(key=_urgency)
    return TransactionListing(
        listed,
        counts,
        len(views),
        TRANSACTION_STATE_TOPIC in directory,
        tuple(coordinators.stale),
        errors,
        tuple(coordinators.shared),
    )


class _Found(NamedTuple):
    """The transactions of one partition, up to the first damage."""

    counts: Counter[str]
    listed: list[ListedTransaction]
    error: LogStorageError | None = None


def _find_steadily(view: LogView, find: Callable[[LogView], _Found]) -> _Found:
    """Return what is found in a log; after a new look where a broker has compacted it meanwhile."""
    found = _Found(Counter(), [])

    def look(now: LogView) -> None:
        nonlocal found
        found = find(now)
        if isinstance(found.error, SegmentVanishedError):
            raise found.error

    with suppress(SegmentVanishedError):  # which is among the errors
        read_steadily(view, look)
    return found


def _views(
    directory: LogDirectory, topics: Iterable[str] | None, partitions: Collection[int]
) -> list[LogView]:
    if topics is not None:
        views = directory.select(topics=topics)
    else:
        views = [view for view in directory if view.topic_partition != CLUSTER_METADATA]
    return [view for view in views if not partitions or view.partition in partitions]


def _listed(
    view: LogView,
    transaction: Transaction,
    coordinated: CoordinatedTransaction | None,
    now: int,
    max_timeout_ms: int,
) -> ListedTransaction:
    is_open = transaction.state == "open"
    started = transaction.first_timestamp
    is_covered = is_open and (
        coordinated is not None
        and coordinated.covers(transaction.producer_id, view.topic, view.partition)
    )
    if is_covered and coordinated is not None and coordinated.started_ms is not None:
        started = coordinated.started_ms
    open_ms = now - started if is_open and started is not None and started <= now else None
    is_overdue = open_ms is not None and open_ms > max_timeout_ms
    # A young one may have begun, or ended, since its coordinator's log was read.
    is_hanging: bool | None = is_overdue and not is_covered
    if is_hanging and coordinated is None:
        is_hanging = None
    prepared_ms = waiting = None
    if is_covered and coordinated is not None and coordinated.state != UNDECIDED:
        prepared_ms = coordinated.updated_ms
        waiting = _waiting(view, transaction)
    return ListedTransaction(
        topic=view.topic,
        partition=view.partition,
        producer_id=transaction.producer_id,
        producer_epoch=transaction.producer_epoch,
        first_offset=transaction.first_offset,
        last_offset=transaction.last_offset,
        state=transaction.state,
        marker_offset=transaction.marker_offset,
        size_bytes=transaction.size_bytes,
        records=transaction.records,
        started_ms=started,
        ended_ms=transaction.marker_timestamp,
        open_ms=open_ms,
        is_overdue=is_overdue,
        transactional_id=None if coordinated is None else coordinated.transactional_id,
        coordinator_state=None if coordinated is None else coordinated.state,
        is_hanging=is_hanging,
        prepared_ms=prepared_ms,
        waiting_records=None if waiting is None else waiting[0],
        waiting_bytes=None if waiting is None else waiting[1],
    )


def _waiting(view: LogView, transaction: Transaction) -> tuple[int, int] | None:
    """Return how many offsets and bytes lie from a transaction's first record on."""
    first = transaction.first_offset
    if first is None:
        return None
    slices = segment_slices(view, first, view.log_end_offset)
    return view.log_end_offset - first, sum(each.size_bytes for each in slices)


_ORDER = {"open": 1, "unknown": 2}


def _urgency(each: ListedTransaction) -> tuple[int, int, str, int, int]:
    order = 0 if each.is_overdue else _ORDER.get(each.state, 3)
    age = -(each.open_ms or 0)
    place = each.marker_offset if each.marker_offset is not None else each.first_offset
    return order, age, each.topic, each.partition, place or 0
