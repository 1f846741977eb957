"""`erase`: records go from logs that we own, and their offsets stay.

A batch that loses records is written anew with the others; one that loses all keeps its header, as
in a cleaning. Markers stay.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pylog.recovery.omitted_records import FoundOffsets, OmittedRecords
from pylog.recovery.retained_batches import BatchSelection
from pylog.recovery.rewritten_directory import DirectoryRewriting, RewrittenRecords
from pylog.text.names import names_nearest_keyword

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from pylog.config.server_properties import ServerProperties
    from pylog.model import TopicPartition
    from pylog.reading.record_filter import RecordFilter
    from pylog.record.batch_scan import Window


@names_nearest_keyword
def erase(  # noqa: PLR0913 - keyword-only options, one for each thing a user may say
    directory: str | os.PathLike[str],
    where: RecordFilter,
    *,
    topics: Iterable[str] = (),
    partitions: Sequence[int] = (),
    pattern: str | None = None,
    look_in: Iterable[str | os.PathLike[str]] = (),
    server_properties: ServerProperties | None = None,
    recover_as_broker: bool = False,
    dry_run: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> RewrittenRecords:
    """Remove the records that a filter finds from a log directory; all others keep their offsets.

    Also records below the log start offset that files still have, and those of aborted
    transactions. Other replicas are to be erased in the same way, each while its broker is stopped:
    a broker does not compare what replicas have.

    Parameters
    ----------
    directory
        The log directory; no broker works on it.
    where
        The records. It has to be about more than places, as `RecordFilter.matching` makes it.
    topics, partitions, pattern
        As for `pylog.jobs.choose_partitions`.
    look_in
        Other log directories, of other brokers or copies, in which only is looked.
    server_properties, recover_as_broker
        As for `pylog.logs.own_log_directory`.
    dry_run
        Whether nothing is changed or locked.
    progress
        Called with the bytes that were looked through to find what is to be rewritten, and all.

    Returns
    -------
    RewrittenRecords
        What was erased, and where such records still are.

    Raises
    ------
    CorruptRecordError, InvalidRecordError
        A segment is damaged: nothing of its partition was changed.
    LogLockedError
        Another process works on the directory.
    LogDirectoryError, UnknownTopicOrPartitionError
        It is no log directory, or has not what was asked for.
    KafkaStorageError
        The disk failed; do it again.
    ValueError
        The filter finds all records.

    Examples
    --------
    >>> rows = [{"key": "user-7", "value": "a"}, {"key": "user-8", "value": "b"}]
    >>> summary = pylog.write_topic("logs", "users", rows, key="key", value="value")
    >>> done = pylog.jobs.erase("logs", pylog.RecordFilter(keys=b"user-7"))
    >>> [(each.topic, each.records) for each in done.partitions], done.remaining
    ([('users', 1)], [])
    """
    if not where.needs_records:
        msg = "the filter is about no record's key, value, headers or time: it would erase all"
        raise ValueError(msg)
    rewriting = DirectoryRewriting(
        directory,
        lambda place: _Eraser(place, where),
        topics=topics,
        partitions=partitions,
        pattern=pattern,
        look_in=look_in,
    )
    if dry_run:
        return rewriting.plan()
    return rewriting.carry_out(server_properties, progress, recover_as_broker=recover_as_broker)


class _Eraser:
    """Leaves out what a filter finds; one log, one thread."""

    def __init__(self, topic_partition: TopicPartition, where: RecordFilter) -> None:
        self._found = FoundOffsets(topic_partition, where)
        omitted = OmittedRecords(topic_partition, exclude=where)
        self._selection = BatchSelection(None, None, omitted)
        self.records = 0

    def count(self, window: Window) -> int:
        return self._found.of(window).size

    def is_due(self, window: Window) -> bool:
        return self.count(window) > 0

    def rewrite(self, window: Window) -> Iterator[memoryview]:
        for part in self._selection.select(window):
            self.records += part.left_out
            if part.data:
                yield part.data
