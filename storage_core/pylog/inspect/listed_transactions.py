"""`transactions`: the transactions of logs, those first that have been open for too long.

A transaction that its coordinator does not know, or thinks ended, and that has no marker here, is
hanging: nothing will end it, and what follows it is never read by read_committed consumers. Kafka
finds those with ``kafka-transactions find-hanging`` (KIP-664).
"""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, NamedTuple

from pylog.clock import SystemClock
from pylog.errors import LogStorageError
from pylog.inspect.transaction_listing import ListedTransaction, TransactionListing
from pylog.inspect.transactional_ids import TRANSACTION_STATE_TOPIC, transactional_ids
from pylog.inspect.transactions import find_transactions
from pylog.keyword_arguments import names_nearest_keyword
from pylog.reading.internal_logs import CLUSTER_METADATA
from pylog.reading.log_directory import open_replicas
from pylog.worker_threads import thread_count, usable_processors

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Collection, Iterable

    from pylog.inspect.transactional_ids import CoordinatedTransaction
    from pylog.inspect.transactions import Transaction
    from pylog.model import TopicPartition
    from pylog.reading.log_directory import LogDirectory
    from pylog.reading.log_view import LogView

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
    threads: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> TransactionListing:
    """Return the transactions of some logs, from headers and markers.

    Parameters
    ----------
    *paths
        Log directories or topic-partition directories, of any number of brokers: of a partition
        that lies there twice the longest replica counts. Partitions of ``__transaction_state``
        among them tell transactional ids.
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
    """
    directory = open_replicas(*paths)
    now = SystemClock().milliseconds() if now_ms is None else now_ms
    coordinators = directory.topics.get(TRANSACTION_STATE_TOPIC, [])
    errors: list[LogStorageError] = []
    by_producer = transactional_ids(coordinators, errors)
    views = _views(directory, topics, partitions)
    listed: list[ListedTransaction] = []
    counts: dict[TopicPartition, dict[str, int]] = {}

    def of_partition(view: LogView) -> _Found:
        found = _Found(Counter(), [])
        try:
            for each in find_transactions(view):
                found.counts[each.state] += 1
                if each.state in ("open", "unknown") or includes_ended:
                    coordinated = by_producer.get(each.producer_id)
                    found.listed.append(_listed(view, each, coordinated, now, max_timeout_ms))
        except LogStorageError as error:
            return found._replace(error=error)
        return found

    total = sum(view.size_bytes for view in views)
    done = 0
    workers = max(1, min(_MAX_THREADS, len(views), _threads(threads)))
    pool = ThreadPoolExecutor(workers, "pylog-transactions")
    try:
        for view, found in zip(views, pool.map(of_partition, views), strict=True):
            if found.error is not None:
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
    return TransactionListing(listed, counts, len(views), bool(coordinators), errors)


class _Found(NamedTuple):
    """What one partition has, up to damage."""

    counts: Counter[str]
    listed: list[ListedTransaction]
    error: LogStorageError | None = None


def _threads(threads: int | None) -> int:
    return thread_count(threads, default=usable_processors())


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
    open_ms = now - started if is_open and started is not None else None
    is_overdue = open_ms is not None and open_ms > max_timeout_ms
    # A young one may have begun, or ended, since its coordinator's log was read.
    is_hanging: bool | None = is_overdue and not is_covered
    if is_hanging and coordinated is None:
        is_hanging = None
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
    )


_ORDER = {"open": 1, "unknown": 2}


def _urgency(each: ListedTransaction) -> tuple[int, int, str, int, int]:
    order = 0 if each.is_overdue else _ORDER.get(each.state, 3)
    age = -(each.open_ms or 0)
    place = each.marker_offset if each.marker_offset is not None else each.first_offset
    return order, age, each.topic, each.partition, place or 0
